"""FTP + EWC (the paper's Tab. 5): leashes that begin anew with each task, and the springs of EWC in the loss.

The springs' gradient is added before the optimizer's step, so it also decides how the leashes grow.
"""

from ftp.lab.methods.ewc import EWC
from ftp.lab.methods.ftp import FTP


class FTPWithEWC(EWC, FTP):
    title = "FTP + EWC"
    summary = "A leash for every layer, and a spring for every weight that old tasks needed."
    options = {**FTP.options, **EWC.options}


METHOD = FTPWithEWC
