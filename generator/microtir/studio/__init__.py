"""A page on this machine on which people drop a model and look at what it becomes.

The server (`server`, `app`, `guard`, `assets`) holds model files and never reads one: whatever has
to do with a model is a job (`jobs/`) that a process of its own runs within limits (`worker`).
"""
