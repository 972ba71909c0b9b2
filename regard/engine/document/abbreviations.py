"""Words that decide whether a full stop ends a sentence, in some European languages."""

from __future__ import annotations

TITLES = frozenset(
    """
    mr mrs ms dr prof rev gen col capt lt sgt st mt maj cmdr adm sen gov pres messrs vs fig figs
    eq eqs nos vol vols pp approx cf ca bzw vgl evtl ggf hr hrn fr frl fa bd hrsg tel sog bzgl inkl exkl
    zzgl bspw insb ehem mme mlle mgr c.-à-d sra srta dña uds ee dott sig sig.ra exmo exma dhr mevr drs
    bijv ul e.g i.e z.b d.h o.g i.d.r v.a p.ex p.e t.ex d.w.z m.a.w
    """.split()  # noqa: SIM905
)
"""Titles and other abbreviations that end no sentence."""

ABBREVIATIONS = frozenset(
    """
    jr sr hon rep inc ltd corp co bros dept univ assn al ft ph.d av uu chr mio mrd tsd med phil rer nat jur
    habil jan feb apr jun jul aug sep sept okt oct nov dez dec
    """.split()  # noqa: SIM905
)
"""Abbreviations that end a sentence if one of the `STARTERS` follows."""

BEFORE_NUMBERS = frozenset(
    """
    no nr art abs sec sect ch chap cap kap tab abb ziff par est op kl pág str
    """.split()  # noqa: SIM905
)
"""Words that belong to a number after them (No. 5), and end a sentence otherwise."""

WITHIN = frozenset(
    """
    etc usw ff resp incl min max qty
    """.split()  # noqa: SIM905
)
"""Abbreviations that end no sentence before a lower-case word, also in a line without capitals."""

STARTERS = frozenset(
    """
    The This That These Those There Then It Its She We They You I My Your Our Their Her His In On At By
    For From With Without After Before Since When While If As But And Or Yet Because Although Though
    However Moreover Furthermore Meanwhile Nevertheless Also Both Each Every Some Many Most Not Nobody
    Nothing Now Once Only Here How What Where Which Who Why Is Are Was Were Does Did Can Could Would
    Should Have Has Had Please Recently Currently Today Yesterday During Until Another Such No Der Die
    Dem Ein Eine Einen Einem Einer Er Sie Es Wir Ihr Ihre Seine Dies Diese Dieser Dieses Dann Damit
    Danach Dabei Doch Aber Und Oder Auch Als Wenn Weil Wie Wer Wo Warum Im Auf Aus Bei Mit Nach Nur Noch
    Nicht Seit Für Vor Über Unter Hier Jetzt Heute Kein Keine Ich Ja Nein Dadurch Daher Deshalb Zudem
    Außerdem Il Elle Ils Elles Nous Vous Je Ce Cette Ces Cela Mais Et Puis Dans Pour Avec Après Avant
    Quand Qui Que Où Au Aux En Sur Une Leur Ella Ellos Yo Esto Esta Este Pero Después Cuando Una Con Por
    Para Su Sus Lui Lei Noi Loro Gli Questo Questa Ma Poi Quando Nel Nella Per Non Ele Ela Eles Isso
    Isto Mas Depois Não Uma Em Het Een Hij Zij Wij Ik Dat Dit Deze Maar Toen Op Voor Niet
    """.split()  # noqa: SIM905
)
"""Articles, pronouns, conjunctions, prepositions and auxiliaries that begin sentences."""

STARTERS_OR_NAMES = frozenset(
    """
    He A An So All Do Let Das Da Den Des Von Vom Man Am Zu Zum Zur Le La Les Un De Du El Los Las Lo O Os
    Um Na Dan
    """.split()  # noqa: SIM905
)
"""Words that begin sentences, or continue a name after an initial (C. De Vries)."""
