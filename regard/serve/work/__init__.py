"""Work behind the routes: jobs, work items, the scheduler, and the thread pool for requests."""
