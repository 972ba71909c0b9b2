"""Work behind the routes: jobs, scheduler, lanes."""
