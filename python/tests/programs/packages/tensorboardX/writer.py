class SummaryWriter:
    def __init__(self, logdir):
        self.logdir = logdir
        print("writes to", logdir)
