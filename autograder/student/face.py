"""Names under which hidden tests import the proxies."""

from .proxy import CallableProxy as Callee
from .proxy import Cotangent
from .proxy import InstanceProxy as Instance
from .proxy import StudentProxy as Student

__all__ = ["Callee", "Cotangent", "Instance", "Student"]
