"""`check("attention_scores")` tries your function on examples; `check()` shows how far you are.

`example("attention_scores", 2)` gives you the arguments of the second example and the right result, to play with.
`hint("attention_scores")` gives a hint, and one more each time. `guess` answers what the notebook asks you to guess.
`buggy("attention_scores")` gives you a wrong one, where an exercise asks you to hunt its mistake down.
It needs nothing but torch. The hidden tests that decide the points ask the same with other numbers.
The files beside it hold the examples and, as numbers, what common mistakes show on them and what is right on the way;
guesses and hints too.
"""

import ast
import base64
import contextlib
import copy
import gzip
import importlib
import inspect
import io
import json
import linecache
import math
import os
import random
import re
import signal
import struct
import sys
import threading
import time
import torch
import traceback
import types
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from html import escape
from itertools import chain, combinations, islice, permutations
from numbers import Real
from pathlib import Path
from statistics import NormalDist
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from typing import Any, NamedTuple, TypeVar
__all__ = ["buggy", "check", "draw", "example", "guess", "hint", "show"]

def check(exercise = None):
 """Try one exercise on its examples; returns the share of its points that they would give.

    Without a name: how far you are in the whole notebook.
    """
 names = sys._getframe(1).f_globals
 exercises, mistakes = _read(EXAMPLES), _read(MISTAKES)
 if exercises is None or mistakes is None:
  return None
 written = json.loads(exercises.pop(WRITTEN, "{}"))
 if exercise is not None and (not isinstance(exercise, str) or exercise not in exercises):
  print(f"The name of an exercise is wanted, as in check({next(iter(exercises))!r}). They are:")
  print(", ".join(exercises))
  return None
 wanted = list(exercises) if exercise is None else [exercise]
 try:
  with as_in_a_new_notebook():
   outcomes = [
    outcome(names, name, _examples(exercises, name), json.loads(mistakes.get(name, "[]")))
    for name in wanted
   ]
   if exercise is not None and (said := outcomes[0].to_look_at):
    steps, is_wrong = Path(__file__).with_name(STEPS), outcomes[0].goes_wrong
    outcomes[0].whereabouts = line_told(names, exercise, steps, said, is_wrong=is_wrong)
 except KeyboardInterrupt:
  print("The check was interrupted, so it says nothing. Run its cell again when you like.")
  return None if exercise is None else 0.0
 if exercise is not None:
  return tell(outcomes[0], not_what_was_run(names, exercise))
 summed(outcomes, written)
 return None

def example(exercise, number = 1, call = 1):
 """What an exercise's example calls it with, and the right result: `args, right = example("scaled_softmax", 2)`.

    Examples count from 1, as the check shows them, and so do the calls of one that makes several.
    """
 exercises = _read(EXAMPLES)
 if exercises is None:
  return None
 exercises.pop(WRITTEN, None)
 if exercise not in exercises:
  print(f"The name of an exercise is wanted; they are: {', '.join(exercises)}.")
  return None
 examples = _examples(exercises, exercise)["examples"]
 steps = examples[number - 1]["steps"] if number in range(1, len(examples) + 1) else []
 calls = calls_with_results(steps)
 if call not in range(1, len(calls) + 1):
  with_result = [str(at) for at, one in enumerate(examples, start=1) if calls_with_results(one["steps"])]
  print(f"There is no such call with a result. The examples of {exercise} with one: {', '.join(with_result)}.")
  return None
 step = calls[call - 1]
 return tuple(as_value(arg) for arg in step.get("args", ())), as_value(step["result"])

def guess(name = "", value = ..., *more):
 """Answers your guess with a sentence: `guess("most_alike", 4)`. It is not marked."""
 lesson = _lesson()
 if lesson is not None:
  first, why = said_of_guess(lesson["guesses"], name, (value, *more) if more else value)
  say(first, [why])

def hint(exercise = None):
 """Shows a hint to an exercise, and each time one more: `hint("scaled_softmax")`.

    Without a name: for which exercises there are hints, and how many of them you have seen.
    """
 lesson = _lesson()
 if lesson is not None:
  hints = lesson["hints"]
  say(*(said_of_hints(hints) if exercise is None else next_hint(hints, exercise)))

def _lesson():
 """The notebook's guesses and hints."""
 try:
  return dict(read_data(Path(__file__).with_name(LESSON)))
 except (OSError, ValueError):
  beside = Path(__file__).name
  print(f"{LESSON} is not beside {beside}, or damaged: if this notebook has hints, fetch its files again.")
  return None

def buggy(name):
 """The wrong function of this name that an exercise hunts: `wrong = buggy("merge_heads")`, to be called."""
 exercises = _read(EXAMPLES)
 if exercises is None:
  return None
 exercises.pop(WRITTEN, None)
 hunted = {prey["of"]: prey for of in exercises.values() if '"hunt"' in of for prey in hunts(json.loads(of))}
 if not isinstance(name, str) or name not in hunted:
  known = f"this notebook has a wrong {', '.join(hunted)}" if hunted else "this notebook has none"
  print(f"The name of a function whose mistake is hunted is wanted: {known}.")
  return None
 return unpacked_function(name, hunted[name]["wrong"])

def _read(name):
 """What a file says of each exercise, as JSON."""
 try:
  path = Path(__file__).with_name(name)
  return dict(_by_exercise(path, path.stat().st_mtime_ns if path.exists() else 0))
 except (OSError, ValueError):
  print(f"{name} is missing beside {Path(__file__).name}, or damaged: fetch the assignment's files again.")
  return None

@lru_cache(maxsize=2)
def _by_exercise(path, _changed):
 return {exercise: json.dumps(of) for exercise, of in read_data(path).items()}

def _examples(exercises, exercise):
 """What an exercise is tried on; a hunt, with what the student's own function is tried on first."""
 of = json.loads(exercises[exercise])
 for one in of["examples"]:
  one["steps"] = in_full(one["steps"])
 for prey in hunts(of):
  prey["examples"] = _examples(exercises, prey["of"])["examples"]
 return of

def packed_function(code, imports):
 return {"code": base64.b85encode(zlib.compress(code.encode(), 9)).decode(), "imports": dict(imports)}

def unpacked_function(name, function):
 scope = {as_: importlib.import_module(module) for as_, module in function["imports"].items()}
 scope["__name__"] = f"a wrong {name}"
 code = zlib.decompress(base64.b85decode(function["code"])).decode()
 exec(compile(code, f"<a wrong {name}>", "exec"), scope)
 found = scope[name]
 return found
MAX_DEPTH = 8
MAX_TENSORS = 500

def tensors_in(value, depth = 0):
 if isinstance(value, torch.Tensor):
  yield value
 elif depth < MAX_DEPTH and isinstance(value, list | tuple | dict):
  for item in value.values() if isinstance(value, dict) else value:
   yield from tensors_in(item, depth + 1)

def each(value, change):
 if isinstance(value, list | tuple):
  return type(value)(each(item, change) for item in value)
 return change(value)

class Arguments(NamedTuple):
 positional: any = ()
 named: any = {}
 def mapped(self, change):
  return Arguments(
   tuple(each(value, change) for value in self.positional),
   {name: each(value, change) for name, value in self.named.items()},
  )
 def apply(self, function):
  return function(*self.positional, **self.named)

def with_held(
 function, held, instances
):
 if not held:
  return function
 def called(*args, **named):
  return function(*together(args, ((place, instances[number]) for place, number in held)), **named)
 return called

def together(args, held):
 found = list(args)
 for place, instance in held:
  found.insert(place, instance)
 return found

def walking_once(function, once):
 if not once:
  return function
 def called(*args, **named):
  return function(*(iter(arg) if isinstance(arg, list | tuple) else arg for arg in args), **named)
 return called

def places_of_others(held, number):
 taken = {place for place, _ in held}
 return [place for place in range(number + len(taken)) if place not in taken]

class Assembled(nn.Module):
 def __init__(
  self,
  parameters,
  buffers,
  frozen,
  shared,
  computes = "",
  others = (),
 ):
  super().__init__()
  self._computes = compile(computes, "<assembled>", "eval") if computes else None
  self._others = tuple(others)
  shapes = {name: tuple(shape) for name, shape in parameters.items()}
  for name, shape in shapes.items():
   owner, last = self._owner(name, shapes)
   if getattr(owner, last, None) is None:
    owner.register_parameter(last, nn.Parameter(torch.rand(shape)))
  for name, shape in buffers.items():
   owner, last = self._owner(name, shapes)
   owner.register_buffer(last, torch.zeros(*shape))
  for name, other in shared.items():
   owner, last = self._owner(name, shapes)
   owner.register_parameter(last, self.get_parameter(other))
  for name in frozen:
   self.get_parameter(name).requires_grad_(False)
  self._matrices = [name for name, own in self.named_parameters(recurse=False) if own.dim() == 2]
  self._layers = [name for name, own in self.named_children() if isinstance(own, nn.Linear)]
 def _owner(self, name, shapes):
  *path, last = name.split(".")
  owner = self
  for depth, step in enumerate(path, start=1):
   if step not in dict(owner.named_children()):
    owner.add_module(step, _part(".".join(path[:depth]), shapes))
   owner = owner.get_submodule(step)
  return owner, last
 def forward(self, x, *others):
  if self._computes:
   own = {**self._parameters, **self._buffers, **self._modules, **dict(zip(self._others, others, strict=True))}
   return eval(self._computes, {"torch": torch, "x": x, **own})
  by_matrices = (x @ getattr(self, name) for name in self._matrices)
  by_layers = (getattr(self, name)(x) for name in self._layers)
  return tuple(chain(by_matrices, by_layers))

def _part(name, shapes):
 weight = shapes.get(f"{name}.weight", ())
 if len(weight) != 2:
  return nn.Module()
 return nn.Linear(weight[1], weight[0], bias=f"{name}.bias" in shapes)

class OperatorMode(TorchDispatchMode):
 supports_higher_order_operators = True
 def __enter__(self):
  _let_subclasses_be_made()
  entered = super().__enter__()
  return entered
 @classmethod
 def _should_skip_dynamo(cls):
  return False

def name_of(operator):
 name = getattr(operator, "overloadpacket", operator).__name__
 return name

@cache
def _let_subclasses_be_made():
 def new(*args, **kwargs):
  if args[0] is torch.Tensor:
   return torch._C.TensorBase.__new__(*args, **kwargs)
  with torch._C._DisableTorchDispatch():
   return torch._C.TensorBase.__new__(*args, **kwargs)
 torch.Tensor.__new__ = new
MAX_MADE = 300
MAX_NUMBERS = 4_000
MAX_ALL_NUMBERS = 60_000
MAX_INPUTS = 16
MAX_RESULTS = 8
_PRINTING = torch._tensor_str.__file__
_WITHOUT_NUMBERS = {
 "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "uniform_", "normal_", "rand", "randn",
 "random_", "detach", "alias", "lift_fresh", "resize_", "set_",
}

@dataclass(frozen=True)
class Made:
 file: any
 line: any
 operator: any
 values: any
 inputs: any = ()
 place: any = 0

@dataclass
class Run:
 made: any = field(default_factory=list)
 result: any = None
 error: any = None
 returned: any = None

class _Call(NamedTuple):
 file: any
 line: any
 place: any
 operator: any
 inputs: any

class Watch(TorchDispatchMode):
 supports_higher_order_operators = True
 def __init__(self, own, replaced, *, in_shape = False):
  super().__init__()
  self._in_shape = in_shape
  self.made: list[Made] = []
  self.of: dict[int, int] = {}
  self.own = own
  self.replaces = bool(replaced)
  self._replaced = replaced
  self._kept: list[Any] = []
  self._written: dict[int, list[int]] = {}
  self._room = MAX_ALL_NUMBERS
 @classmethod
 def _should_skip_dynamo(cls):
  return False
 def __torch_dispatch__(
  self, func, types, args = (), kwargs = None
 ):
  name = getattr(func, "overloadpacket", func).__name__
  inputs = {number for one in _tensors((args, kwargs or {})) for number in self._behind(one)}
  given = func(*args, **(kwargs or {}))
  if name in _WITHOUT_NUMBERS:
   if "empty" in name:
    given.zero_()
   return given
  noted = _Call(*_called_at(self.own), name, tuple(sorted(inputs)[:MAX_INPUTS]))
  if isinstance(given, torch.Tensor):
   return self._noted(given, noted)
  if isinstance(given, tuple | list):
   each = [self._noted(one, noted) if isinstance(one, torch.Tensor) else one for one in given]
   return type(given)(each) if type(given) in (tuple, list) else given
  return given
 def _behind(self, tensor):
  memory = memory_of(tensor)
  number = self.of.get(id(tensor))
  written = self._written.get(memory, [])
  return written if number is None else [number, *(one for one in written if one > number)]
 def _noted(self, tensor, call):
  number = len(self.made)
  if number >= MAX_MADE or not call.line:
   return tensor
  new = self._replaced.get(number)
  if new is not None and (new.shape == tensor.shape or not self._in_shape):
   new = new.to(tensor.dtype)
   if not call.operator.endswith("_"):
    tensor = new.clone()
   elif tensor.shape == new.shape:
    tensor.copy_(new)
  numbers = tensor.numel()
  if numbers > MAX_NUMBERS or numbers > self._room or tensor.is_complex() or tensor.layout != torch.strided:
   values = torch.empty(0, dtype=torch.float64)
  else:
   self._room -= numbers
   values = tensor.detach().to("cpu", torch.float64, copy=True).contiguous()
  self.made.append(Made(call.file, call.line, call.operator, values, call.inputs, call.place))
  self._kept.append(tensor)
  if call.operator.endswith("_"):
   self._kept.append(_held(tensor))
   self._written.setdefault(memory_of(tensor), []).append(number)
  self.of[id(tensor)] = number
  return tensor

def _called_at(own):
 frame = sys._getframe(1)
 while frame is not None:
  if frame.f_code.co_filename == _PRINTING:
   break
  if own(frame.f_code.co_filename):
   return frame.f_code.co_filename, frame.f_lineno, frame.f_lasti
  frame = frame.f_back
 return "", 0, 0

def place_of(own):
 return _called_at(own)[:2]

def watched(call, watch):
 run = Run(watch.made)
 def returning(frame, event, _):
  if event == "return" and watch.own(frame.f_code.co_filename):
   run.returned = frame.f_code.co_filename, frame.f_lineno
 before = sys.getprofile()
 try:
  with torch.no_grad(), watch:
   if not watch.replaces:
    sys.setprofile(returning)
   try:
    run.result = call()
   finally:
    sys.setprofile(before)
 except Exception as error:
  run.error = error
 return run

def made_ready(
 thing,
 built,
 parameters,
 arguments,
 through = (),
):
 def call():
  target = thing
  if built is not None:
   target = thing(*built)
   _load(target, parameters or {})
  own = (arg.clone() if isinstance(arg, torch.Tensor) else copy.deepcopy(arg) for arg in arguments)
  return fed(target, through)(*own)
 return call

def fed(target, through):
 if not through:
  return target
 method, *read = through
 def call(*arguments):
  for number in range(0, len(arguments), len(read)):
   getattr(target, method)(*arguments[number : number + len(read)])
  return tuple(getattr(target, name) for name in read)
 return call

def _load(instance, values):
 own = dict(instance.named_parameters()) if isinstance(instance, torch.nn.Module) else {}
 if own.keys() != values.keys():
  raise TypeError("it has other parameters")
 for name, parameter in own.items():
  parameter.data = values[name].clone().view(parameter.shape)

def memory_of(tensor):
 held = _held(tensor)
 return id(tensor) if held is None else int(held._cdata)

def _held(tensor):
 try:
  return tensor.untyped_storage()
 except (NotImplementedError, RuntimeError):
  return None

def _tensors(value):
 if isinstance(value, torch.Tensor):
  return [value]
 if isinstance(value, dict):
  value = list(value.values())
 return [one for item in value for one in _tensors(item)] if isinstance(value, tuple | list) else []
_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "addbmm"}
_VECTOR_PRODUCTS = {"mv", "addmv", "dot", "vdot"}
_TWO_FOR_AN_ELEMENT = {"addcmul", "addcdiv", "addr", "lerp"}
_FREE = {
 "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "set_",
 "alias", "lift_fresh", "lift", "_reshape_alias", "detach_", "resolve_conj", "resolve_neg",
}
_FUSED_ATTENTION = {
 "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
 "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
 "_scaled_dot_product_fused_attention_overrideable",
}

@dataclass(frozen=True)
class Most:
 count: any = 0
 of: any = ""
 file: any = ""
 line: any = 0

@dataclass
class Cost:
 operations: any = 0
 largest: any = field(default_factory=Most)
 alive: any = field(default_factory=Most)
 rows: any = field(default_factory=Most)
 uncounted: any = field(default_factory=Most)
 def packed(self):
  each = (self.largest, self.alive, self.rows, self.uncounted)
  return self.operations, *((one.count, one.of, one.file, one.line) for one in each)

class Measured(NamedTuple):
 cost: any
 value: any

class _Memory:
 def __init__(self):
  self._held: dict[int, tuple[StorageWeakRef, int]] = {}
  self._given: dict[int, tuple[torch.Tensor, int]] = {}
  self._total = 0
 def give(self, tensor):
  self._given[memory_of(tensor)] = tensor, _numbers(tensor)
 def knows(self, tensor):
  return (key := memory_of(tensor)) in self._given or key in self._held
 def take(self, tensor):
  key = memory_of(tensor)
  numbers = _numbers(tensor)
  if key in self._given:
   numbers -= self._given[key][1]
  before = self._held[key][1] if key in self._held else 0
  if numbers <= before:
   return 0
  self._held[key] = StorageWeakRef(tensor.untyped_storage()), numbers
  self._total += numbers - before
  return numbers
 def more_than(self, most):
  if self._total <= most + most // 100:
   return 0
  for key, (memory, numbers) in list(self._held.items()):
   if memory.expired():
    del self._held[key]
    self._total -= numbers
  return self._total if self._total > most else 0

class Counting(OperatorMode):
 def __init__(self, own, given, parameters):
  super().__init__()
  self.cost = Cost()
  self.memory = _Memory()
  self._own = own
  self._rows: dict[str, float] = {}
  self._parameters: dict[int, frozenset[str]] = {}
  self._derived: list[StorageWeakRef] = []
  self._sizes = {name: parameter.numel() for name, parameter in parameters.items()}
  for tensor in given:
   self.memory.give(tensor)
  for name, parameter in parameters.items():
   self.memory.give(parameter)
   if parameter.dim() == 2:
    self._parameters[memory_of(parameter)] = frozenset({name})
 def __torch_dispatch__(
  self, func, types, args = (), kwargs = None
 ):
  given = func(*args, **(kwargs or {}))
  with torch._C.DisableTorchFunction():
   made = [given] if isinstance(given, torch.Tensor) else list(tensors_in(given))
   factors = _operands(args)
   operands = [*factors, *_operands(kwargs.values())] if kwargs else factors
   for tensor in operands:
    if tensor.layout != torch.strided or not self.memory.knows(tensor):
     self.take_foreign(tensor)
   for tensor in made:
    self._take(tensor)
   self.count(func, factors, operands, made)
  return given
 def watching(self):
  return self
 def finish(self, value):
  """Take note of what the call returned."""
 def take_foreign(self, tensor):
  self._take(tensor)
 def _take(self, tensor):
  if tensor.layout != torch.strided:
   return
  cost = self.cost
  if numbers := self.memory.take(tensor):
   if numbers > cost.largest.count:
    cost.largest = Most(numbers, str(tuple(tensor.shape)), *self.place())
   if alive := self.memory.more_than(cost.alive.count):
    cost.alive = Most(alive, "", *self.place())
 def count(
  self, func, factors, operands, made
 ):
  name = name_of(func)
  if name in _PRODUCTS or name in _VECTOR_PRODUCTS:
   one, other = factors[-2:]
   self.cost.operations += 2 * one.numel() * (other.shape[-1] if name in _PRODUCTS else 1)
   self._project(one, other)
   return
  self._derive(operands, made)
  if name in _FREE or getattr(func, "is_view", False):
   return
  if name in _FUSED_ATTENTION:
   queries, keys, values = factors[:3]
   self.cost.operations += 2 * queries[..., 0].numel() * keys.shape[-2] * (keys.shape[-1] + values.shape[-1])
   return
  each = 2 if name.rstrip("_") in _TWO_FOR_AN_ELEMENT else 1
  self.cost.operations += each * max((tensor.numel() for tensor in (*operands, *made)), default=0)
 def _project(self, one, other):
  for weight, rows in ((one, other), (other, one)):
   within = weight.shape[-1] if weight is one else weight.shape[-2] if weight.dim() > 1 else weight.shape[0]
   names = sorted(self._parameters.get(memory_of(weight), ()))
   whole = sum(self._sizes[name] for name in names)
   for name in names:
    counted = rows.numel() / max(within, 1) * weight.numel() / max(whole, 1)
    self._rows[name] = self._rows.get(name, 0.0) + counted
    if math.ceil(self._rows[name] - 1e-6) > self.cost.rows.count:
     self.cost.rows = Most(math.ceil(self._rows[name] - 1e-6), name, *self.place())
 def _derive(self, operands, made):
  if not operands or not self._parameters:
   return
  each = [self._parameters.get(memory_of(tensor)) for tensor in operands]
  if all(each):
   names = frozenset().union(*(names for names in each if names))
   for tensor in made:
    if self._parameters.setdefault(memory_of(tensor), names) is names:
     self._derived.append(StorageWeakRef(tensor.untyped_storage()))
 def place(self):
  frame = sys._getframe(1)
  while frame is not None:
   if self._own(frame.f_code.co_filename):
    return frame.f_code.co_filename, frame.f_lineno
   frame = frame.f_back
  return "", 0

def _operands(args):
 found = list()
 for arg in args:
  if isinstance(arg, torch.Tensor):
   found.append(arg)
  elif isinstance(arg, list | tuple):
   found += [one for one in arg if isinstance(one, torch.Tensor)]
 return found

def of_call(
 call,
 arguments,
 function,
 own,
 *,
 once = False,
 counting = Counting,
):
 is_module = isinstance(function, torch.nn.Module)
 given = [*tensors_in(arguments.positional), *tensors_in(dict(arguments.named))]
 given += list(function.buffers()) if is_module else []
 counted = counting(own, given, dict(function.named_parameters()) if is_module else {})
 arguments = _one_by_one(arguments) if once else arguments
 with torch.no_grad(), counted.watching():
  value = arguments.apply(call)
 counted.finish(value)
 return Measured(counted.cost, value)

def _one_by_one(arguments):
 def copies(values):
  for value in values:
   yield value.clone()
 positional = (copies(arg) if isinstance(arg, list | tuple) else arg for arg in arguments.positional)
 return Arguments(tuple(positional), arguments.named)

def _numbers(tensor):
 has_room_for_two = tensor.is_complex() or tensor.dtype in (torch.int64, torch.uint64)
 return tensor.untyped_storage().nbytes() // tensor.element_size() * (2 if has_room_for_two else 1)
FOLLOWS = "follows"
MIXED = "mixed"
ELSEWHERE = "elsewhere"
DIFFERS = "differs"
BY_NUMBERS = ", by its numbers"
DEVICE = torch.device("meta")
_CPU = torch.device("cpu")
_CLOSE = 1e-3
_CROSSING = {"copy_", "_to_copy"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}

class _Away(torch.Tensor):
 here: any
 __torch_function__ = torch._C._disabled_torch_function_impl
 def tolist(self):
  return self.here.tolist()
 def numpy(self, *, force = False):
  return self.here.numpy(force=True) if force else super().numpy()
 def __format__(self, specification):
  return format(self.item(), specification) if self.dim() == 0 else object.__format__(self, specification)
 is_cuda = True
 is_meta = False
 @classmethod
 def __torch_dispatch__(
  cls,
  func,
  types,
  args = (),
  kwargs = None,
 ):
  return _carried_out(func, args, kwargs or {})

def _away(here):
 away = torch.Tensor._make_wrapper_subclass(
  _Away,
  here.shape,
  strides=here.stride(),
  storage_offset=here.storage_offset(),
  dtype=here.dtype,
  layout=here.layout,
  device=DEVICE,
  requires_grad=here.requires_grad,
 )
 away.here = here
 return away

class Devices(OperatorMode):
 def __init__(self):
  super().__init__()
  self.mixed = False
  self.by_numbers = False
 def __torch_dispatch__(
  self,
  func,
  types,
  args = (),
  kwargs = None,
 ):
  self.by_numbers = self.by_numbers or name_of(func) == "_local_scalar_dense"
  operands = list(tensors_in((_one_device_of_these(func, args), dict(kwargs or {}))))
  devices = {t.device for t in operands if t.dim() > 0 or isinstance(t, _Away)}
  if len(devices) > 1 and name_of(func) not in _CROSSING:
   self.mixed = True
  return _carried_out(func, args, kwargs or {})

def _one_device_of_these(func, args):
 if name_of(func) not in _INDEXING or len(args) < 2 or not isinstance(args[0], _Away):
  return args
 indexed, indices, *values = args
 away = [index for index in indices if isinstance(index, _Away)]
 by_mask = all(index is None or index.dtype in (torch.bool, torch.uint8) for index in indices)
 if by_mask and values and isinstance(values[0], torch.Tensor) and values[0].numel() == 1:
  values = values[1:]
 return (indexed, away, *values)

class _AsOnAnotherDevice(TorchFunctionMode):
 def __torch_function__(
  self,
  func,
  types,
  args = (),
  kwargs = None,
 ):
  args, named = tuple(map(_not_cuda, args)), {name: _not_cuda(value) for name, value in (kwargs or {}).items()}
  if func is torch.Tensor.cuda:
   return args[0].to(DEVICE)
  if func is torch.Tensor.type and len(args) > 1 and str(args[1]).startswith(_TYPES):
   return args[0].to(DEVICE, torch.empty(0).type(args[1].replace(_TYPES, "torch.")).dtype)
  if func in _BY_INDEX:
   return func(args[0], _with_numbers(args[1]), *args[2:], **named)
  if func not in _OF_NUMBERS:
   return func(*args, **named)
  if func is torch.Tensor.new_tensor and named.get("device") is None:
   named["device"] = args[0].device
  if named.get("device") is None or torch.device(named["device"]).type != DEVICE.type:
   return func(*args, **named)
  return func(*args, **{**named, "device": _CPU}).to(DEVICE)

def _with_numbers(index):
 if isinstance(index, tuple):
  return tuple(map(_with_numbers, index))
 is_list = isinstance(index, list) and bool(index) and all(isinstance(one, int) for one in index)
 return torch.tensor(index) if is_list else index

def _not_cuda(value):
 is_cuda = isinstance(value, torch.device | str) and re.fullmatch(r"cuda(:\d)?", str(value))
 if not is_cuda:
  return value
 return DEVICE.type if isinstance(value, str) else DEVICE

class _Generator(torch.Generator):
 def __new__(cls, device = "cpu"):
  return super().__new__(cls, _CPU)

@contextmanager
def _standing_in():
 generator, autocast = torch.Generator, torch.autocast.__init__
 def autocast_of_the_cpu(self, device_type, *args, **kwargs):
  autocast(self, "cpu" if device_type == DEVICE.type else device_type, *args, **kwargs)
 torch.Generator, torch.autocast.__init__ = _Generator, autocast_of_the_cpu
 try:
  yield
 finally:
  torch.Generator, torch.autocast.__init__ = generator, autocast
_TYPES = f"torch.{DEVICE.type}."
_BY_INDEX = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
_OF_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.Tensor.new_tensor)

def _carried_out(func, args, kwargs):
 operands = list(tensors_in((args, dict(kwargs))))
 named = kwargs.get("device")
 is_away = any(isinstance(t, _Away) for t in operands) if named is None else torch.device(named).type == DEVICE.type
 on_cpu = dict(kwargs) if named is None else {**kwargs, "device": _CPU}
 result = func(*_each(args, _brought_here), **_each(on_cpu, _brought_here))
 if torch.Tag.inplace_view in func.tags and isinstance(args[0], _Away):
  with no_dispatch():
   func(*args, **kwargs)
 if name_of(func) == "copy_" or func._schema.is_mutable:
  return _as_given(func, args, kwargs, result)
 return _each(result, _away) if is_away else result

def _as_given(func, args, kwargs, result):
 given = [*zip(func._schema.arguments, args, strict=False)]
 given += [(argument, kwargs[argument.name]) for argument in func._schema.arguments if argument.name in kwargs]
 held = {
  id(_brought_here(one)): one for argument, value in given if argument.is_write for one in tensors_in([value])
 }
 is_away = any(isinstance(t, _Away) for t in tensors_in((args, dict(kwargs))))
 return _each(result, lambda one: held.get(id(one), _away(one) if is_away else one))

def _brought_here(tensor):
 return tensor.here if isinstance(tensor, _Away) else tensor

def _each(value, change):
 if isinstance(value, torch.Tensor):
  return change(value)
 if isinstance(value, list | tuple):
  return type(value)(_each(item, change) for item in value)
 return {key: _each(item, change) for key, item in value.items()} if isinstance(value, dict) else value

def moved(module):
 with Devices():
  return module.to(DEVICE)

def moved_there(arguments):
 return arguments.mapped(lambda arg: _away(arg.clone()) if isinstance(arg, torch.Tensor) else arg)

@contextmanager
def as_elsewhere(devices):
 with _standing_in(), _AsOnAnotherDevice(), devices:
  yield devices

def probe(call, arguments, on_cpu):
 moved_inputs = moved_there(arguments)
 with as_elsewhere(Devices()) as devices:
  try:
   value = moved_inputs.apply(call)
  except Exception:
   if devices.mixed:
    return MIXED, None
   raise
 if devices.mixed:
  return MIXED, None
 how = BY_NUMBERS if devices.by_numbers else ""
 return _verdict(value, on_cpu) + how, _each(value, _brought_here)

def _verdict(value, on_cpu):
 away = list(tensors_in(value))
 if not all(isinstance(one, _Away) for one in away):
  return ELSEWHERE
 here, right = list(map(_brought_here, away)), list(tensors_in(on_cpu()))
 if any(one.device != _CPU for one in right):
  return ELSEWHERE
 return FOLLOWS if _alike(here, right) or not _alike(right, list(tensors_in(on_cpu()))) else DIFFERS

def _alike(some, others):
 return len(some) == len(others) and all(
  one.shape == other.shape
  and torch.allclose(one.detach().double(), other.detach().double(), rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
  for one, other in zip(some, others, strict=True)
 )
Gradient = torch.Tensor | None

def flow_back(
 losses, inputs, parameters
):
 leaves = [_leaves_of(arg) for arg in inputs]
 wanted = [*chain(*leaves), *(parameter for parameter in parameters.values() if parameter.requires_grad)]
 found = iter([None] * len(wanted))
 if losses:
  found = iter(torch.autograd.grad(losses, wanted, allow_unused=True))
 return (
  [_at_argument(arg, own, [next(found) for _ in own]) for arg, own in zip(inputs, leaves, strict=True)],
  {name: next(found) if parameter.requires_grad else None for name, parameter in parameters.items()},
 )

def _leaves_of(arg):
 return [one for one in tensors_in(arg) if one.is_floating_point() and one.requires_grad]

def _at_argument(arg, leaves, found):
 if isinstance(arg, torch.Tensor) or all(one is None for one in found):
  return next(iter(found), None)
 pairs = zip(leaves, found, strict=True)
 return torch.cat([(torch.zeros_like(leaf) if one is None else one).flatten() for leaf, one in pairs])
_cpu_generator = torch.default_generator

def seed_generators(seed, device):
 _cpu_generator.manual_seed(seed)
 if device.type == "cuda":
  torch.cuda.manual_seed_all(seed)

def seed_in_use(seed):
 seed_generators(seed, torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))
DRAWN_DIGITS = 3
USUAL = "float32"

def drawn(rule, shape):
 return _drawn(tuple(rule), tuple(shape)).clone()

@cache
def _drawn(rule, shape):
 seed, *bell = rule
 numbers, count = random.Random(int(seed)), torch.Size(shape).numel()
 if bell:
  normal = NormalDist(*bell)
  made = [normal.inv_cdf(numbers.random() or 0.5) for _ in range(count)]
 else:
  made = [0.1 + numbers.random() for _ in range(count)]
 rounded = [round(number, DRAWN_DIGITS) for number in made]
 return torch.tensor(rounded, dtype=torch.float64).reshape(shape)

def identity(size, shape):
 *_, rows, columns = shape
 distance = torch.arange(rows)[:, None] - torch.arange(columns)[None, :]
 return (distance % size == 0).double().expand(*shape)
_PACKED = {"float32": "f", "float64": "d"}

def packed(numbers, dtype = "float32"):
 return base64.b85encode(struct.pack(f"<{len(numbers)}{_PACKED[dtype]}", *numbers)).decode()

def unpacked(text, dtype = "float32"):
 held = base64.b85decode(text)
 code = _PACKED[dtype]
 return list(struct.unpack(f"<{len(held) // struct.calcsize(code)}{code}", held))

def are_short(numbers):
 return all(abs(number) < 2**15 / 1000 and round(number, DRAWN_DIGITS) == number for number in numbers)

def in_thousandths(numbers):
 return base64.b85encode(struct.pack(f"<{len(numbers)}h", *(round(number * 1000) for number in numbers))).decode()

def shortened(steps):
 first = [steps.index(step) for step in steps]
 return [_usual(step) if at == first[at] else {"again": first[at]} for at, step in enumerate(steps)]

def _usual(plain):
 if isinstance(plain, list | tuple):
  return [_usual(one) for one in plain]
 if not isinstance(plain, dict):
  return plain
 left_out = "shape" in plain and plain.get("dtype") == USUAL
 return {name: _usual(one) for name, one in plain.items() if not (left_out and name == "dtype")}

def in_full(steps):
 return [steps[step["again"]] if "again" in step else step for step in steps]

def as_value(plain):
 if not isinstance(plain, dict):
  return plain
 if "tuple" in plain:
  return tuple(as_value(item) for item in plain["tuple"])
 if "plain" in plain:
  return plain["plain"]
 shape, kind = plain["shape"], plain.get("dtype", USUAL)
 dtype = getattr(torch, kind)
 if "drawn" in plain:
  made = drawn(plain["drawn"], shape).to(dtype)
 elif "identity" in plain:
  made = identity(plain["identity"], shape).to(dtype)
 elif "thousandths" in plain:
  held = base64.b85decode(plain["thousandths"])
  counts = struct.unpack(f"<{len(held) // 2}h", held)
  made = torch.tensor([count / 1000 for count in counts], dtype=dtype).reshape(shape)
 elif "packed" in plain:
  made = torch.tensor(unpacked(plain["packed"], kind), dtype=dtype).reshape(shape)
 else:
  values = [float(value) if isinstance(value, str) else value for value in plain["values"]]
  made = torch.tensor(values, dtype=dtype).reshape(shape)
 return made.to(getattr(torch, plain["then"])) if "then" in plain else made.clone()

class Wrong(Exception):
 odd_shape = False

@dataclass
class Call:
 step: any
 function: any
 args: any
 named: any
 value: any = None
 held: any = field(default_factory=list)
 changed: any = field(default_factory=list)
 gradients: any = field(default_factory=list)
 parameter_gradients: any = field(default_factory=dict)
 whole: any = None
 verdict: any = ""
 cost: any = None

@dataclass
class Trial:
 names: any
 instances: any = field(default_factory=list)
 built: any = field(default_factory=list)
 seed: any = 0
 printed: any = field(default_factory=io.StringIO)
 now: any = None
 def take(self, step):
  match step["operation"]:
   case "manual_seed":
    seed_in_use(step["seed"])
    self.seed = step["seed"]
   case "build":
    self._build(step)
   case "assemble":
    self.instances.append(assembled(step))
    self.built.append(lambda: assembled(step))
   case "load":
    load(self.instances[step["instance"]], {n: as_value(v) for n, v in step["values"].items()})
   case "to":
    self.instances[step["instance"]].to(getattr(torch, step["dtype"]))
   case "train":
    self.instances[step["instance"]].train(step["mode"])
   case "parameters":
    return {n: p.detach() for n, p in self.instances[step["instance"]].named_parameters()}
   case "call" | "read" | "cost" | "probe":
    return self._call(step)
  return None
 def _build(self, step):
  args, named = [as_value(arg) for arg in step.get("args", ())], step.get("named", {})
  seed, self.seed = self.seed, 0
  def build():
   seed_in_use(seed)
   with self._listening():
    return self.names[step["name"]](*args, **named)
  instance = build()
  if not step.get("plain") and not isinstance(instance, torch.nn.Module):
   raise Wrong(f"`{step['name']}` does not inherit from torch.nn.Module.")
  self.instances.append(instance)
  self.built.append(build)
 def _call(self, step):
  own = called(step, self.names, self.instances)
  call = self.now = Call(step, own, [as_value(arg) for arg in step.get("args", ())], dict(step.get("named", {})))
  call.held = [(place, self.instances[number]) for place, number in step.get("with", ())]
  with self._listening():
   if step["operation"] == "cost":
    ready = with_held(own, step.get("with", ()), self.instances)
    arguments = Arguments(tuple(copied(call.args)), call.named)
    call.cost, call.value = of_call(ready, arguments, own, is_cell, once="once" in step)
    return call
   if step["operation"] == "probe":
    call.verdict = self._followed(call)
    return call
   if "whole" in step:
    call.whole = _whole(call)
   given, before = copied(call.args), copied(call.args)
   for one in tensors_in(given):
    one.requires_grad_("cotangents" in step and one.is_floating_point())
   ready = with_held(walking_once(own, "once" in step), step.get("with", ()), self.instances)
   call.value = ready(*given, **call.named)
  at = places_of_others(step.get("with", ()), len(given))
  call.changed = [at[number] for number, held in enumerate(before) if not is_unwritten(held, given[number])]
  if "cotangents" in step:
   self._flow_back(call, given)
  return call
 def _flow_back(self, call, given):
  own = call.function
  parameters = dict(own.named_parameters()) if isinstance(own, torch.nn.Module) else {}
  cotangents = [as_value(one) for one in call.step["cotangents"]]
  outputs = list(call.value) if isinstance(call.value, tuple | list) else [call.value]
  losses = [(one * by.to(one)).real.sum() for one, by in zip(outputs, cotangents, strict=False)
    if isinstance(one, torch.Tensor) and one.shape == by.shape and one.requires_grad]
  reached = losses if len(outputs) == len(cotangents) else []
  call.gradients, call.parameter_gradients = flow_back(reached, together(given, call.held), parameters)
 def _followed(self, call):
  here = away = call.function
  if "instance" in call.step:
   here, away = (self._another(call.step["instance"]) for _ in range(2))
   away = moved(away)
  def on_cpu():
   seed_in_use(0)
   return here(*copied(call.args), **call.named)
  seed_in_use(0)
  return probe(away, Arguments(tuple(call.args), call.named), on_cpu)[0]
 def _another(self, number):
  instance = self.built[number]()
  instance.train(self.instances[number].training)
  return instance
 @contextlib.contextmanager
 def _listening(self):
  self.printed = io.StringIO()
  with contextlib.redirect_stdout(self.printed):
   yield

def is_cell(file):
 return "ipykernel_" in file or file.startswith("<ipython-input")

def called(step, names, instances):
 own = names[step["name"]] if "name" in step else instances[step.get("instance", -1)]
 if step["operation"] == "read":
  return lambda: getattr(own, step["part"])
 return getattr(own, step["part"]) if "part" in step else own

def assembled(step):
 seed_in_use(0)
 named = {part: step[part] for part in ("computes", "others") if part in step}
 more = step.get("buffers", {}), step.get("frozen", ()), step.get("shared", {})
 return Assembled(step["parameters"], *more, **named)

def load(instance, values):
 own = dict(instance.named_parameters())
 if own.keys() != values.keys():
  has = ", ".join(sorted(own)) or "no parameters at all"
  raise Wrong(f"Its parameters should be {', '.join(sorted(values))}; it has {has}.")
 for name, parameter in own.items():
  if parameter.shape != values[name].shape:
   shapes = f"{tuple(values[name].shape)}, here it is {tuple(parameter.shape)}"
   raise Wrong(f"The parameter `{name}` should have shape {shapes}.")
  parameter.data.copy_(values[name])

def _whole(call):
 if call.step["whole"] == "argument":
  return call.args[0]
 was = call.function.training
 call.function.eval()
 try:
  return call.function(*copied(call.args), **call.named)
 finally:
  call.function.train(was)

def copied(args):
 return [each(arg, lambda one: one.clone() if isinstance(one, torch.Tensor) else copy.deepcopy(one)) for arg in args]

def is_unwritten(one, other):
 if isinstance(one, list | tuple):
  return len(one) == len(other) and all(map(is_unwritten, one, other))
 if not isinstance(one, torch.Tensor):
  return bool(one == other)
 if one.shape != other.shape or one.dtype != other.dtype:
  return False
 one, other = one.detach(), other.detach()
 return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())
_LONGEST_ARGUMENT = 60
_MOST_PARTS = 6

def calls_with_results(steps):
 return [step for step in steps if "name" in step and "result" in step and not step.keys() & {"with", "once"}]

def to_play_with(call, exercise, number, example):
 calls = calls_with_results(example["steps"])
 at = next((at for at, step in enumerate(calls, start=1) if step is call.step), 0)
 which = f", call={at}" if at > 1 else ""
 return f'args, right = example("{exercise}", {number}{which})' if at else ""

def in_words(call, example):
 step = call.step
 if "name" in step:
  once = ", as an iterator, which can be walked once" if "once" in step else ""
  return f"{step['name']}({_arguments(call.function, together(call.args, call.held), call.named)}){once}"
 builds = [one for one in example["steps"] if one["operation"] in ("build", "assemble")]
 build = builds[step["instance"]]
 if "part" in step:
  ends = (
   ""
   if step["operation"] == "read"
   else f"({_arguments(call.function, together(call.args, call.held), call.named)})"
  )
  made = f"{build['name']}()" if "name" in build else "the module"
  return f"{made}.{step['part']}{ends}"
 if "others" in build:
  x = ", ".join(_argument("x", arg) for arg in call.args)
  return f"`{build['computes']}`, with {x}"
 if build["operation"] == "assemble":
  return f"{_argument('', call.function)}, called with {_arguments(None, call.args, call.named)}"
 made = _arguments(None, [as_value(arg) for arg in build.get("args", ())], build.get("named", {}))
 mode = "in training" if call.function.training else "after eval()"
 forward = getattr(call.function, "forward", None)
 return f"{build['name']}({made})({_arguments(forward, together(call.args, call.held), call.named)}), {mode}"

def _arguments(function, args, named):
 try:
  names = list(inspect.signature(function).parameters) if function is not None else []
 except (TypeError, ValueError):
  names = []
 words = [_argument(names[number] if number < len(names) else "", arg) for number, arg in enumerate(args)]
 return ", ".join([*words, *(_argument(name, arg) for name, arg in named.items())])

def _argument(name, arg):
 if isinstance(arg, torch.Tensor):
  dtype = "" if arg.dtype == torch.float32 else f" and {arg.dtype}"
  return f"{name or 'a tensor'} of shape {tuple(arg.shape)}{dtype}"
 if isinstance(arg, torch.nn.Module):
  parts = [f"{part} {tuple(own.shape)}" for part, own in arg.named_parameters()]
  more = "" if len(parts) <= _MOST_PARTS else f" and {len(parts) - _MOST_PARTS} more"
  return f"{name or 'a module'} with {', '.join(parts[:_MOST_PARTS]) or 'no parameters'}{more}"
 if isinstance(arg, list | tuple):
  each = [_argument("", one) for one in arg]
  alike = len(each) > _MOST_PARTS and len(set(each)) == 1
  return f"{name} of {len(each)}: {f'each {each[0]}' if alike else ', '.join(each)}"
 said = repr(arg)
 said = said if len(said) <= _LONGEST_ARGUMENT else f"{said[:_LONGEST_ARGUMENT]}…"
 return f"{name}={said}" if name else said

def read_data(path):
 if not path.exists() and path.with_suffix("").exists():
  return json.loads(path.with_suffix("").read_text(encoding="utf-8"))
 try:
  return json.loads(gzip.decompress(path.read_bytes()))
 except EOFError as error:
  raise ValueError(str(error)) from error

def data_of(value):
 return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), mtime=0)
_first_tried = {}

def not_what_was_run(names, exercise):
 tried = _cell_of(names.get(exercise))
 if not tried:
  return ""
 definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{re.escape(exercise)}\b", re.M)
 run = [text for text in names.get("In", ()) if isinstance(text, str) and definition.search(text)]
 if run and run[-1].strip() != tried and tried in [text.strip() for text in run]:
  return (
   f"When its cell was run last, it ended in an error before `{exercise}` was defined: "
            "what is tried here is the version before."
  )
 text, since = _first_tried.get(exercise, ("", 0.0))
 if text != tried:
  _first_tried[exercise] = tried, time.time()
  return ""
 saved = _saved(names, exercise, since)
 if saved and saved != tried:
  return "Its cell has changed since it was run: run it again, then this check."
 return ""

def _cell_of(thing):
 file = file_of(thing)
 return "".join(linecache.getlines(file)).strip() if file else ""

def file_of(thing):
 functions = list(vars(thing).values()) if inspect.isclass(thing) else [thing]
 codes = [code for one in functions if inspect.iscode(code := getattr(one, "__code__", None))]
 return codes[0].co_filename if codes else ""

def _saved(names, exercise, since):
 path = names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
 try:
  file = Path(str(path))
  if not path or file.stat().st_mtime <= since:
   return ""
  cells = json.loads(file.read_text())["cells"]
  found = [one for one in cells if one["metadata"].get("nbgrader", {}).get("grade_id") == exercise]
  return "".join(found[0]["source"]).strip() if found else ""
 except (OSError, ValueError, KeyError, TypeError, AttributeError):
  return ""
NOT_GUESSED = "Put your guess in place of `...`, and run this cell."
_YES, _NO = {"yes", "y", "true"}, {"no", "n", "false"}
_NEAR, _NEAR_0 = 0.01, 0.005
_MOST = 1000

def said_of_guess(guesses, name, value):
 guess = guesses.get(name) if isinstance(name, str) else None
 if guess is None:
  known = ", ".join(f"`{one}`" for one in guesses)
  return "", f"This notebook has these guesses: {known}." if known else "This notebook has no guesses."
 if _is_open(value):
  return "", NOT_GUESSED
 right = agrees(guess["answer"], value)
 if right is None:
  return "", wanted(guess["answer"])
 if right:
  return "Yes.", guess["because"]
 instead = [sentence for other, sentence in guess["instead"] if agrees(other, value)]
 if isinstance(guess["answer"], str) and guess["instead"] and not instead:
  choices = sorted([guess["answer"], *(other for other, _ in guess["instead"])])
  listed = ", ".join(f'`"{one}"`' for one in choices)
  return "", f"The answers to choose from are {listed}."
 return "Not quite.", (instead or [guess["because"]])[0]

def agrees(answer, value):
 try:
  return _agrees(answer, _plain(value))
 except Exception:
  return None

def wanted(answer):
 if isinstance(answer, bool):
  return 'Yes or no is wanted here: write "yes" or "no".'
 if isinstance(answer, str):
  return "A word is wanted here, between quotation marks."
 if isinstance(answer, list):
  return "A list of numbers is wanted here, between square brackets and with commas between them."
 return "A number is wanted here."

def _is_open(value):
 return value is ... or (type(value) is list and bool(value) and all(one is ... for one in value))

def _agrees(answer, value):
 if isinstance(answer, list):
  if not isinstance(value, list) or not all(map(_is_number, value)):
   return None
  return len(value) == len(answer) and all(map(_near, answer, value))
 if isinstance(value, list) and len(value) == 1:
  value = value[0]
 if isinstance(answer, bool):
  said = _yes_or_no(value)
  return None if said is None else said == answer
 if isinstance(answer, str):
  return _word(value) == _word(answer) if isinstance(value, str) else None
 if isinstance(value, str):
  value = float(value)
 return _near(answer, value) if _is_number(value) else None

def _plain(value):
 if isinstance(value, torch.Tensor):
  return value.tolist() if value.numel() <= _MOST else None
 if isinstance(value, list | tuple | range):
  return [_plain_number(one) for one in value] if len(value) <= _MOST else None
 if hasattr(value, "tolist") and getattr(value, "size", 0) <= _MOST:
  return value.tolist()
 return value

def _plain_number(value):
 if isinstance(value, torch.Tensor) or hasattr(value, "tolist"):
  return value.item()
 return value

def _yes_or_no(value):
 if isinstance(value, bool):
  return value
 word = _word(value) if isinstance(value, str) else ""
 return True if word in _YES else False if word in _NO else None

def _is_number(value):
 return isinstance(value, Real) and not isinstance(value, bool)

def _near(answer, value):
 try:
  number = float(value)
 except OverflowError:
  return False
 if isinstance(answer, int) and number.is_integer():
  return number == answer
 if math.isnan(answer):
  return math.isnan(number)
 return math.isclose(number, answer, rel_tol=0, abs_tol=max(_NEAR * abs(answer), _NEAR_0))

def _word(text):
 words = text.casefold().split()
 return "".join(one for one in "".join(words[words[:1] == ["the"] :]) if one.isalnum())
_seen = {}

def said_of_hints(hints):
 if not hints:
  return "This notebook has no hints.", []
 first = next(iter(hints))
 return f'Hints you have seen; `hint("{first}")` shows one more:', [
  f"`{exercise}`: {_seen.get(exercise, 0)} of {len(its)}" for exercise, its in hints.items()
 ]

def next_hint(hints, exercise):
 its = hints.get(exercise) if isinstance(exercise, str) else None
 if its is None:
  known = ", ".join(f"`{one}`" for one in hints)
  return "", [f"There are hints for these exercises: {known}." if known else "This notebook has no hints."]
 before = _seen.get(exercise, 0)
 _seen[exercise] = seen = min(before + 1, len(its))
 lines = [f"{number}. {one}" for number, one in enumerate(its[:seen], start=1)]
 if before == len(its):
  lines.append(
   f'There are no more. Read the exercise\'s text again, see what `check("{exercise}")` says, '
            "or ask: show what you have tried."
  )
 return f"{'Hint' if seen == 1 else 'Hints'} for `{exercise}`, {seen} of {len(its)}", lines
MOST_NUMBERS = 12
APART = 1e-3
_ROUNDING = 1e-6
_MOST_WRITTEN = 24
_LONGEST = 200
ANY_MORE = "..."

@dataclass(frozen=True)
class Prey:
 of: any
 takes: any
 also: any = ()
 hides: any = ()
 @property
 def tensors(self):
  return [_wanted(one) for one in self.takes]

@dataclass(frozen=True)
class Wanted:
 name: any
 dims: any
 dtype: any
 @property
 def sized(self):
  return [dim for dim in self.dims if dim != ANY_MORE]
 @property
 def shape(self):
  return f"({', '.join(self.dims)}{',' * (len(self.dims) == 1)})"

@dataclass(frozen=True)
class Found:
 problem: any
 why: any
_DIFFERS = Found("", "differs")

def shown_by(
 given,
 prey,
 wrong,
 right,
 named,
 whose,
):
 wanted = prey.tensors
 if (unusable := _unusable(given, wanted, named)) is not None:
  return unusable
 tensors = [given] if len(wanted) == 1 else list(given)
 held = [one.detach().to("cpu", copy=True) for one in tensors]
 expected, refused = _called(right, held, prey.also)
 if refused:
  return Found(f"{whose} does not take this input: {refused}", "refused")
 got, failed = _called(wrong, held, prey.also)
 if failed or _gap(got, expected) > APART:
  return _DIFFERS
 gap = _gap(got, expected)
 near = f" They differ by {gap:.1g} at most; more than {APART:g} is asked." if gap > 0 else ""
 shapes = _listed([f"{one.name} of shape {tuple(each.shape)}" for one, each in zip(wanted, held, strict=True)])
 sentence = (
  f"On your input, {shapes}, the wrong one and the right one both give {_written(expected)}: no difference."
 )
 return Found(f"{sentence}{near}", f"alike: {_hidden_by(held, prey)}")

def _wanted(written):
 name, _, about = written.partition(": ")
 *dims, last = about.split()
 dtypes = {"bool": torch.bool, "int64": torch.int64}
 if last in dtypes:
  return Wanted(name, tuple(dims), dtypes[last])
 return Wanted(name, (*dims, last), torch.float32)

def _unusable(given, wanted, named):
 if len(wanted) == 1:
  given = (given,)
 elif not isinstance(given, tuple | list) or len(given) != len(wanted):
  expected = f"{len(wanted)} tensors are expected: {', '.join(one.name for one in wanted)}"
  return Found(f"The input is {named(given)}; {expected}.", f"no input: {_kind(given)}")
 for one, tensor in zip(wanted, given, strict=True):
  what = "The input" if len(wanted) == 1 else f"`{one.name}`"
  if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.is_meta:
   return Found(f"{what} is {named(tensor)}; a tensor is expected.", f"no tensor: {_kind(tensor)}")
  least = len(one.sized)
  if tensor.dim() < least or (ANY_MORE not in one.dims and tensor.dim() > least):
   several = f"{tensor.dim()} dimension{'s' * (tensor.dim() != 1)}"
   return Found(f"{what} has {several}; {one.shape} is expected.", f"{one.name} of {tensor.dim()} dimensions")
  if tensor.dtype != one.dtype:
   how = ""
   if one.dtype == torch.float32 and not tensor.is_complex():
    how = (
     " Call `.float()`"
     if tensor.is_floating_point()
     else " Write its numbers with a point, or call `.float()`"
    )
    how += "."
   return Found(f"{what} is {tensor.dtype}; {one.dtype} is expected.{how}", f"{one.name} in {tensor.dtype}")
  if not tensor.numel():
   return Found(f"{what} has no numbers: its shape is {tuple(tensor.shape)}.", "empty")
 count = sum(tensor.numel() for tensor in given)
 if count > MOST_NUMBERS:
  return Found(f"The input has {count} numbers; at most {MOST_NUMBERS} are allowed.", "too many numbers")
 if not all(bool(tensor.isfinite().all()) for tensor in given):
  return Found("The input has NaN or infinite numbers; finite ones are expected.", "not finite")
 return _unfit(wanted, [one.shape for one in given])

def _unfit(wanted, shapes):
 sizes = {}
 for one, shape in zip(wanted, shapes, strict=True):
  for dim, size in zip(one.sized, shape[len(shape) - len(one.sized) :], strict=True):
   if sizes.setdefault(dim, size) != size:
    expected = f"{_listed([each.shape for each in wanted])} {'are' if len(wanted) > 1 else 'is'} expected"
    said = f"{dim} is {sizes[dim]} in one place and {size} in another; {expected}."
    return Found(said, f"{dim} of two sizes")
 return None

def _called(function, tensors, also):
 try:
  with torch.no_grad():
   return function(*(one.clone() for one in tensors), *also), ""
 except Exception as error:
  said = str(error).strip().partition("\n")[0][:_LONGEST]
  return None, f"{type(error).__name__}: {said}" if said else type(error).__name__

def _gap(one, other):
 if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape != other.shape:
  return torch.inf
 a, b = one.detach().double(), other.detach().double()
 same = (a == b) | (a.isnan() & b.isnan())
 gaps = ((a - b).abs() - _ROUNDING * b.abs()).nan_to_num(torch.inf, torch.inf)
 return max(0.0, float(gaps.masked_fill(same, 0.0).amax())) if gaps.numel() else 0.0

def _listed(words):
 *others, last = words
 return f"{', '.join(others)} and {last}" if others else last

def _written(value):
 if not isinstance(value, torch.Tensor) or value.numel() > _MOST_WRITTEN:
  return "the same"
 return _in_brackets(value.detach().tolist())

def _in_brackets(value):
 if isinstance(value, list):
  return f"[{', '.join(map(_in_brackets, value))}]"
 return f"{value:.4g}" if isinstance(value, float) else str(value)

def _hidden_by(tensors, prey):
 sizes = {}
 by_name = {}
 for wanted, tensor in zip(prey.tensors, tensors, strict=True):
  sizes |= dict(zip(wanted.sized, tensor.shape[tensor.dim() - len(wanted.sized) :], strict=True))
  by_name[wanted.name] = wanted, tensor
 return next((one for one in prey.hides if _holds(one, sizes, by_name)), "")

def _holds(hiding, sizes, tensors):
 if "=" in hiding:
  one, _, other = hiding.partition("=")
  return sizes[one] == (int(other) if other.isdigit() else sizes[other])
 name, _, *how = hiding.split()
 wanted, tensor = tensors[name]
 if hiding.split()[1] == "all":
  return bool((tensor == float(how[0])).all())
 places = [wanted.sized.index(dim) - len(wanted.sized) for dim in how[1:]]
 match how[:1]:
  case []:
   return bool((tensor == tensor.flatten()[0]).all())
  case ["along"]:
   return bool((tensor == tensor.narrow(places[0], 0, 1)).all())
 return torch.equal(tensor.transpose(*places), tensor)

def _kind(value):
 return str(getattr(value, "type_name", type(value).__name__))
COMES_FIRST = "your own function is what the wrong one is compared with."

def hunts(of):
 steps = [step for one in of["examples"] for step in one["steps"]]
 return [step["hunt"] for step in steps if "hunt" in step]

def caught(call, names):
 return looked_at(call.value, call.step["hunt"], names)

def looked_at(given, hunt, names):
 prey = Prey(hunt["of"], tuple(hunt["takes"]), tuple(hunt.get("also", ())), tuple(hunt.get("hides", ())))
 own = names[prey.of]
 with contextlib.redirect_stdout(io.StringIO()):
  return shown_by(given, prey, unpacked_function(prey.of, hunt["wrong"]), own, _in_words, f"Your `{prey.of}`")

def _in_words(value):
 if isinstance(value, torch.Tensor):
  if value.is_meta:
   return "a tensor on the meta device, which holds no numbers"
  layout = str(value.layout).removeprefix("torch.")
  return f"a tensor of shape {tuple(value.shape)}" if layout == "strided" else f"a tensor of layout {layout}"
 name = type(value).__name__
 return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
LIBRARY_SOFTMAX = "library softmax"
LIBRARY_ATTENTION = "library attention"
_PATTERNS = {
 LIBRARY_SOFTMAX: re.compile(r"\w*(soft(max|min)|log(cum)?sumexp)\w*", re.I),
 LIBRARY_ATTENTION: re.compile(
  r"\w*(attention|attn|sdpa_dense|_sfdp_pattern)\w*|_transformer_encoder_layer_fwd", re.I
 ),
}
_CLASSES = {
 LIBRARY_SOFTMAX: re.compile(r"soft(max|min)|stickbreaking", re.I),
 LIBRARY_ATTENTION: re.compile(r"attention|attn", re.I),
}
_NOT_ATTENTION = re.compile(r"(register|activate|restore|list|current)_\w*")
_seen_in_library_calls = set()

@cache
def library_of(name):
 if _NOT_ATTENTION.fullmatch(name):
  return None
 return next((library for library, pattern in _PATTERNS.items() if pattern.fullmatch(name)), None)

def library_of_class(name):
 return next((library for library, pattern in _CLASSES.items() if pattern.search(name)), None)

def note(library):
 _seen_in_library_calls.add(library)

def taken():
 found = sorted(_seen_in_library_calls)
 _seen_in_library_calls.clear()
 return found
OF_WRITING, OF_DTYPE, OF_GRADIENT, OF_DEVICE = "writes", "dtype", "gradient", "device"
BY_CAST, OF_NOTHING, OF_OTHERS = "cast", "new", "made"
CUT_BY_DETACH, CUT_BY_DATA, CUT_BY_NO_GRAD, CUT_BY_NUMBERS = "detach", "data", "no_grad", "numbers"
_PLAIN = ("tolist", "item", "numpy", "__array__", "__float__", "tensor", "as_tensor", "asarray", "new_tensor")
_CUT_BY = {"detach": CUT_BY_DETACH, **dict.fromkeys(_PLAIN, CUT_BY_NUMBERS)}
_NEW = ("_like", "new_")
_MAX_UNDONE = 6

class Lost(NamedTuple):
 file: any
 line: any
 how: any

class Asked(NamedTuple):
 thing: any
 arguments: any
 built: any = None
 parameters: any = None
 through: any = ()
 def ready(self, change):
  def changed(one):
   if not isinstance(one, torch.Tensor):
    return copy.deepcopy(one)
   return change(one.clone()) if one.is_floating_point() else one.clone()
  target = self.thing
  if self.built is not None:
   target = self.thing(*self.built)
   own = dict(target.named_parameters()) if self.parameters else {}
   for name, values in (self.parameters or {}).items():
    own[name].data = change(values.clone()).view(own[name].shape)
  return fed(target, self.through), tuple(each(arg, changed) for arg in self.arguments)

def where_lost(aspect, details, asked, own):
 if aspect == OF_GRADIENT:
  return _of_gradient(details[0], asked, own)
 with torch.no_grad():
  if aspect == OF_WRITING:
   return _of_writing(int(details[0]), asked, own)
  if aspect == OF_DTYPE:
   return _of_dtype(getattr(torch, details[0]), getattr(torch, details[1]), asked, own)
  return _of_device(asked, own)

def _of_writing(number, asked, own):
 target, arguments = asked.ready(lambda one: one)
 with _Writing(own, {memory_of(one) for one in tensors_in(arguments[number : number + 1])}) as seen:
  target(*arguments)
 file, line = seen.place
 return Lost(file, line, OF_OTHERS) if line else None

class _Writing(OperatorMode):
 def __init__(self, own, memories):
  super().__init__()
  self._own = own
  self._memories = memories
  self.place = ("", 0)
 def __torch_dispatch__(
  self, func, types, args = (), kwargs = None
 ):
  held = [one for one in _written_in_lost_aspects(func, args, kwargs or {}) if memory_of(one) in self._memories]
  before = [one.clone() for one in held]
  given = func(*args, **(kwargs or {}))
  if not self.place[1] and not all(map(torch.equal, before, held)):
   self.place = place_of(self._own)
  return given

def _written_in_lost_aspects(func, args, kwargs):
 known = getattr(getattr(func, "_schema", None), "arguments", ())
 given = [*zip(known, args, strict=False), *((one, kwargs[one.name]) for one in known if one.name in kwargs)]
 return [tensor for one, value in given if one.is_write for tensor in tensors_in([value])]

class _Note(NamedTuple):
 place: any
 operator: any
 dtype: any
 inputs: any
 is_of_others: any
 @property
 def how(self):
  return BY_CAST if self.operator == "_to_copy" else OF_OTHERS if self.is_of_others else OF_NOTHING

class _Notes:
 def __init__(self, own):
  self._own = own
  self.made: list[_Note] = []
  self._of: dict[int, int] = {}
  self._kept: list[Any] = []
  self._into: dict[int, list[int]] = {}
 def behind(self, tensor):
  number = self._of.get(id(tensor), -1)
  into = self._into.get(memory_of(tensor), [])
  return [number, *(one for one in into if one > number)] if number >= 0 else into
 def note(self, func, operands, given):
  inputs = tuple(number for one in operands for number in self.behind(one))
  for one in tensors_in(given):
   self._of[id(one)] = len(self.made)
   self._kept.append(one)
   if name_of(func).endswith("_"):
    self._into.setdefault(memory_of(one), []).append(len(self.made))
   self.made.append(_Note(place_of(self._own), name_of(func), one.dtype, inputs, bool(operands)))
 def first(self, tensors, is_such):
  pending, seen, found = [n for one in tensors for n in self.behind(one)], set(), list()
  while pending:
   number = pending.pop()
   if number in seen or not is_such(self.made[number]):
    continue
   seen.add(number)
   before = [n for n in self.made[number].inputs if n < number and is_such(self.made[n])]
   pending += before
   if not before:
    found.append(number)
  note = self.made[min(found)] if found else None
  return note if note and note.place[1] else None

class _Noting(OperatorMode):
 def __init__(self, notes):
  super().__init__()
  self._notes = notes
 def __torch_dispatch__(
  self, func, types, args = (), kwargs = None
 ):
  given = func(*args, **(kwargs or {}))
  self._notes.note(func, list(tensors_in((args, dict(kwargs or {})))), given)
  return given

def _of_dtype(found, wanted, asked, own):
 for dtype in [wanted] if wanted.is_floating_point else [torch.float32, torch.float64]:
  target, arguments = asked.ready(partial(torch.Tensor.to, dtype=dtype))
  if isinstance(target, torch.nn.Module):
   target.to(dtype)
  notes = _Notes(own)
  with _Noting(notes):
   result = target(*arguments)
  others = [one for one in tensors_in(result) if one.dtype == found != wanted]
  note = notes.first(others[:1], lambda one: _real(one.dtype) == found)
  if note is None:
   continue
  if note.operator == "arange" and not found.is_floating_point:
   return None
  return Lost(*note.place, note.how)
 return None

def _real(dtype):
 return dtype.to_real() if dtype.is_complex else dtype

class _Cuts(TorchFunctionMode):
 def __init__(self, own, undone):
  super().__init__()
  self._own = own
  self._undone = undone
  self._off: tuple[str, int] | None = None
  self.cuts: dict[tuple[str, int], str] = {}
 def __torch_function__(
  self, func, types, args = (), kwargs = None
 ):
  name, place = str(getattr(func, "__name__", "")), place_of(self._own)
  if name == "_set_grad_enabled":
   if place == self._undone and not args[0]:
    return None
   self._off = None if args[0] else place
  carries = any(one.requires_grad for one in tensors_in((args, dict(kwargs or {}))))
  is_data = func is torch.Tensor.data.__get__
  if carries and place == self._undone and (is_data or name == "detach"):
   return args[0]
  given = func(*args, **(kwargs or {}))
  if carries and not any(part in name for part in _NEW):
   made = [one for one in tensors_in(given) if one.is_floating_point()]
   is_cut = name in _PLAIN or (made and not any(one.requires_grad for one in made))
   if is_cut and not torch.is_grad_enabled():
    self.cuts.setdefault(self._off or ("", 0), CUT_BY_NO_GRAD)
   elif is_cut:
    self.cuts.setdefault(place, CUT_BY_DATA if is_data else _CUT_BY.get(name, OF_OTHERS))
  return given

def _of_gradient(where, asked, own):
 arrived, cuts = _arrives(where, asked, own)
 if arrived or not cuts:
  return None
 mends = [place for place in list(cuts)[:_MAX_UNDONE] if place[1] and _arrives(where, asked, own, place)[0]]
 if not mends and len(cuts) == 1 and set(cuts.values()) == {CUT_BY_NUMBERS}:
  mends = [place for place in cuts if place[1]]
 return Lost(*mends[0], cuts[mends[0]]) if len(mends) == 1 else None

def _arrives(
 where, asked, own, undone = None
):
 with torch.enable_grad():
  target, arguments = asked.ready(lambda one: one)
  own_parameters = dict(target.named_parameters()) if isinstance(target, torch.nn.Module) else {}
  for parameter in own_parameters.values():
   parameter.requires_grad_(False)
  leaves = [own_parameters[where]] if where in own_parameters else list(tensors_in([arguments[int(where)]]))
  for leaf in leaves:
   leaf.requires_grad_()
  with _Cuts(own, undone) as seen:
   result = target(*arguments)
  ends = [one for one in tensors_in(result) if one.requires_grad]
  found = torch.autograd.grad([one.sum() for one in ends], leaves, allow_unused=True) if ends else []
 return any(one is not None for one in found), seen.cuts

class _Staying(Devices):
 def __init__(self, notes):
  super().__init__()
  self._notes = notes
  self.stayed: list[torch.Tensor] = []
 def __torch_dispatch__(
  self, func, types, args = (), kwargs = None
 ):
  was, operands = self.mixed, list(tensors_in((args, dict(kwargs or {}))))
  try:
   given = super().__torch_dispatch__(func, types, args, kwargs)
  finally:
   if self.mixed and not was:
    self.stayed = [one for one in operands if one.device.type == "cpu" and one.dim()]
  here = [one for one in tensors_in(given) if one.device.type == "cpu"]
  if here:
   self._notes.note(func, operands, here)
  return given

def _of_device(asked, own):
 notes = _Notes(own)
 with _Noting(notes):
  target, arguments = asked.ready(lambda one: one)
 if isinstance(target, torch.nn.Module):
  target = moved(target)
 there = moved_there(Arguments(arguments))
 stayed = []
 with as_elsewhere(_Staying(notes)) as seen:
  try:
   stayed = [one for one in tensors_in(there.apply(target)) if one.device.type == "cpu"]
  except Exception:
   if not seen.mixed:
    raise
 note = notes.first(seen.stayed or stayed, lambda _: True)
 if note is None:
  return None
 return Lost(*note.place, note.how)

class Expected:
 def __init__(self, value, tolerance):
  self.value = value
  self.tolerance = tolerance
 def __getitem__(self, index):
  return Expected(self.value[index], self.tolerance)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")

def expecting(value, tolerance):
 if isinstance(value, tuple | list):
  items = [expecting(item, tolerance) for item in value]
  return tuple(items) if isinstance(value, tuple) else items
 if isinstance(value, dict):
  return {key: expecting(item, tolerance) for key, item in value.items()}
 return Expected(value.detach(), tolerance) if isinstance(value, torch.Tensor) else value

def close(one, other, tolerance):
 return torch.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)

def difference(
 actual,
 expected,
 named,
 told,
 *,
 tolerance = None,
 what = "The result",
):
 if isinstance(expected, tuple):
  if not isinstance(actual, tuple | list) or len(actual) != len(expected):
   return f"{what} is {named(actual)}; {len(expected)} tensors are expected."
  each = (
   difference(one, other, named, told, tolerance=tolerance, what=f"The {nth} result")
   for nth, one, other in zip(ORDINALS, actual, expected, strict=False)
  )
  return next(filter(None, each), None)
 shape = tuple(expected.value.shape)
 if not isinstance(actual, torch.Tensor):
  return f"{what} is {named(actual)}; a tensor of shape {shape} is expected."
 if actual.shape != shape:
  return f"{what} has shape {tuple(actual.shape)}; {shape} is expected."
 if actual.is_complex():
  return f"{what} is complex; real numbers are expected."
 tolerance = expected.tolerance if tolerance is None else tolerance
 actual, right = actual.detach().to("cpu", torch.float64), expected.value.double()
 if bool(((actual - right).abs() < tolerance * (1 + right.abs())).all()):
  return None
 alike = close(actual, right, tolerance)
 return None if bool(alike.all()) else f"{what} {told(actual, right, alike)}"

def oddly_shaped(actual, expected, tolerance = None):
 if isinstance(expected, tuple):
  several = isinstance(actual, tuple | list) and len(actual) == len(expected)
  return several and all(
   _same(one, other, tolerance) or oddly_shaped(one, other, tolerance)
   for one, other in zip(actual, expected, strict=True)
  )
 if not isinstance(actual, torch.Tensor) or actual.shape == expected.value.shape:
  return False
 return _same(actual.squeeze(), Expected(expected.value.squeeze(), expected.tolerance), tolerance)

def _same(actual, expected, tolerance):
 return difference(actual, expected, str, lambda *_: "differs", tolerance=tolerance) is None
SAME_WEIGHTS = "The weights are the same under every seed: is one set inside the class?"
RAISES_NOTHING = "It raises nothing."
_NO_MORE_THAN_HALF = "As long as this fails, the exercise gives no more than half of its points."
_OF_LIBRARIES = {
 LIBRARY_SOFTMAX: "a library's softmax, or a part of one such as logsumexp",
 LIBRARY_ATTENTION: "a library's attention",
}
_OF_DEVICES = {
 MIXED: "It mixes devices: a tensor that it makes stays on the CPU when the inputs are elsewhere. Make it "
    "where they are (`device=`), or bring it there (`.to`).",
 ELSEWHERE: "The result is not on the inputs' device.",
 DIFFERS: "On another device it gives another result than on the CPU.",
}

def with_article(name):
 return f"{'an' if name[:1].lower() in tuple('aeio') else 'a'} {name}"

def argument(number):
 return f"the {ORDINALS[number]} argument"

def detached(where):
 return f"No gradient arrives at {where}: is it left unused, or the result detached from it somewhere?"

def no_parameter(name):
 return f"It has no parameter `{name}`."

def of_another_shape(found, shape):
 return f"The result is {found}; a tensor of shape {tuple(shape)} is expected."
RESULT_NOT_FINITE = "The result has NaN or infinite values."

def not_finite(where):
 return f"The gradient of {where} has NaN or infinite values; the result has none."

def writes_into(arguments):
 which = " and ".join(f"the {ORDINALS[number]}" for number in arguments)
 return f"It writes into {which} argument. Operations ending in `_`, `+=`, `/=` and `x[i] = ...` work in place."

def changed_by_the_future(token):
 return f"The result of token {token} changes when only later tokens do: something of the future gets into it."

def calls_forbidden(libraries):
 named = " and ".join(_OF_LIBRARIES.get(one, one) for one in libraries)
 return f"It calls {named}; this exercise asks you to write that step yourself."

def halves_the_points(complaint):
 return f"{complaint}{'' if complaint.endswith(('.', '?', '!')) else '.'} {_NO_MORE_THAN_HALF}"

def of_devices(verdict):
 return _OF_DEVICES.get(verdict.removesuffix(BY_NUMBERS))

def other_parameters(found):
 return f"Found: {', '.join(f'{name} {tuple(shape)}' for name, shape in found.items()) or 'none'}."
_ASPECTS = {
 OF_WRITING: re.compile(r"It writes into the (\w+)"),
 OF_DTYPE: re.compile(r"The result is torch\.(\w+); torch\.(\w+) is expected"),
 OF_GRADIENT: re.compile(r"No gradient arrives at (?:the (\w+)|`([\w.]+)`)"),
 OF_DEVICE: re.compile("|".join(re.escape(_OF_DEVICES[one]) for one in (MIXED, ELSEWHERE))),
}

def aspect_of(complaint):
 for aspect, pattern in _ASPECTS.items():
  if found := pattern.search(complaint):
   words = [one for one in found.groups() if one]
   return aspect, tuple(_number(one) for one in words)
 return None

def _number(word):
 return str(ORDINALS.index(word)) if word in ORDINALS else "0" if word == "input" else word

@dataclass(frozen=True)
class TellingCase:
 exercise: any
 arguments: any
 built: any = None
 parameters: any = None
 rules: any = None
 through: any = ()
 is_silent: any = False
 untold: any = frozenset()
TOLERANCE = 2e-5
_INFINITE = 1e6
LARGE = 1e5
_NAN = 12345678.0

@dataclass(frozen=True)
class Right:
 values: any
 operator: any
 number: any = None
 step: any = ""
 is_part: any = False
 @cached_property
 def is_mask(self):
  return is_mask(self.values)

@dataclass
class Reference:
 case: any
 result: any
 rights: any
 before: any
 inputs: any
 scaled: any
 _by_shape: any = field(default_factory=dict)
 def __post_init__(self):
  shapes = {}
  for number, right in enumerate(self.rights):
   shapes.setdefault(without_ones(right.values.shape), []).append(number)
  for shape, numbers in shapes.items():
   self._by_shape[shape] = torch.stack([comparable(self.rights[n].values).flatten() for n in numbers]), numbers
 @cached_property
 def lengths(self):
  return sorted({size for right in self.rights for size in right.values.shape[:1]})
 @cached_property
 def hidden(self):
  found = list()
  for right in self.rights:
   if right.is_part or right.values.dim() < 2:
    continue
   values = right.values.squeeze()
   for hidden in (values != 0,) if is_mask(values) else (values == 0, values <= -LARGE):
    is_new = not any(torch.equal(one, hidden) for one in found)
    if is_new and bool(hidden.any()) and not bool(hidden.all()):
     found.append(hidden)
  return found
 def known(self, values):
  stacked, numbers = self._by_shape.get(without_ones(values.shape), (None, []))
  if stacked is None:
   return []
  one = comparable(values).flatten()
  close = ((stacked - one).abs() <= TOLERANCE * (1 + one.abs())).all(dim=1)
  return [number for number, is_close in zip(numbers, close.tolist(), strict=True) if is_close]
 def has_shape(self, shape):
  return without_ones(shape) in self._by_shape
 def is_scaled(self, values):
  squeezed = values.squeeze()
  return any(one.shape == squeezed.shape and same(one, squeezed) for one in self.scaled)
 def is_right(self, run):
  if run.error is not None:
   return False
  found = list(tensors_in(run.result))
  return len(found) == len(self.result) and all(
   one.shape == other.shape and not one.is_complex() and same(one, other)
   for one, other in zip(found, self.result, strict=True)
  )

def comparable(values):
 return values.double().clamp(-_INFINITE, _INFINITE).nan_to_num(_NAN)

def same(one, other):
 first, second = comparable(one.detach()).flatten(), comparable(other.detach()).flatten()
 return bool(((first - second).abs() <= TOLERANCE * (1 + second.abs())).all())

def distinct(rights):
 found = {}
 for right in rights:
  if right.values.numel():
   digits = comparable(right.values).round(decimals=4) + 0.0
   key = tuple(right.values.shape), digits.numpy().tobytes()
   if key not in found or (right.step and not found[key].step):
    found[key] = right
 return list(found.values())

def parts_of(rights):
 parts = []
 for right in rights:
  for values in _slices(right.values):
   parts.append(Right(values, right.operator, is_part=True))
 return parts

def _slices(values, first = 0, depth = 2):
 for dim in range(first, values.dim() - 1) if depth else ():
  for index in range(values.shape[dim] if values.shape[dim] > 1 else 0):
   one = values.select(dim, index)
   yield one
   yield from _slices(one, dim, depth - 1)

def all_before(made):
 before = {}
 for number, one in enumerate(made):
  before[number] = frozenset(one.inputs).union(*(before[other] for other in one.inputs if other < number))
 return before

def alone_fits(needed, made):
 return not bool((needed.abs() > LARGE).any()) or bool((made.isinf() & needed.isinf()).any())

def is_mask(values):
 if values.numel() < 2 or values.dim() < 2:
  return False
 found = comparable(values).unique()
 return len(found) == 2 and bool((found == 0).any())

def without_ones(shape):
 return tuple(size for size in shape if size != 1)
_FINITE = 1e6
_MAKE_NEW = ("_like", "zeros", "ones", "full", "arange", "eye", "scalar_tensor", "fill_", "zero_")
SHAPING = {
 "view", "_unsafe_view", "reshape", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "clone", "slice",
 "select", "split", "unbind", "_to_copy", "as_strided", "_reshape_alias", "split_with_sizes", "movedim", "chunk",
}
_CUTTING = {"slice", "select", "split", "split_with_sizes", "unbind", "chunk", "max", "min"}
_ALIKE = 1e-6
_MOST_DIMS, _MOST_PLACES = 4, 3

class Standing:
 def __init__(self, reference, made):
  self._reference = reference
  self.made = made
  self.before = all_before(made)
  self.known = [[] if _tells_nothing(one.values) else reference.known(one.values) for one in made]
  self.neutral = list()
  self.mask = list()
  for one in made:
   self.neutral.append(self._is_neutral(one))
   self.mask.append(self._is_mask(one))
  self.scaled = [
   not known and reference.is_scaled(one.values) for known, one in zip(self.known, made, strict=True)
  ]
  self.comes_right = self._vouched()
  self.well_used = self._well_used()
  self._call_of = _calls(made)
  self._calls: dict[tuple[int | str, ...], list[int]] = {}
  for number, call in enumerate(self._call_of):
   self._calls.setdefault(call, []).append(number)
  self._plausible = dict()
 def turns(self, number):
  return self._calls[self._call_of[number]]
 def taken_from(self, numbers):
  found = []
  blocks = [self.made[number].values.squeeze() for number in numbers]
  for which, right in enumerate(self._reference.rights):
   if right.is_part or right.is_mask:
    continue
   places = list()
   for block in blocks:
    place = _place_of(right.values, block)
    if place is None:
     break
    places.append(place)
   else:
    found.append((which, places))
  return found
 def apart(self, number):
  alike = self._taken_apart(number)
  for length in self._reference.lengths if len(alike) > 1 else ():
   whole = alike[:length]
   if len(whole) == length > 1 and self._reference.known(torch.stack([self.made[n].values for n in whole])):
    return whole
  return []
 def is_shaping(self, number):
  return self.made[number].operator in SHAPING
 def is_new(self, number):
  return _makes_new(self.made[number])
 def is_unknown(self, number):
  fine = self.known[number] or self.neutral[number] or self.scaled[number]
  return not fine and number not in self.comes_right
 def may_be_wrong(self, number):
  if self.known[number] or self.neutral[number] or self.mask[number]:
   return False
  is_finite = bool(self.made[number].values.abs().le(_FINITE).all())
  return number not in self.comes_right or not is_finite
 def is_odd(self, number):
  made = self.made[number]
  if not self.neutral[number] or not made.values.numel():
   return False
  if made.operator == "arange" or bool((made.values != made.values.flatten()[0]).any()):
   return not self._reference.known(made.values)
  return made.values.numel() > 1 and not self._reference.has_shape(made.values.shape)
 def is_plausible(self, number):
  if number not in self._plausible:
   values = self.made[number].values
   self._plausible[number] = self.scaled[number] or self._is_rearranged(values) or self._is_cut(values)
  return self._plausible[number]
 def is_known_mask(self, number):
  values = self.made[number].values
  if not self.mask[number]:
   return False
  one = values.reshape(-1, *values.shape[-2:])[0]
  hidden = (one != 0).double()
  is_alike = bool((values == one).all())
  return is_alike and any(self._reference.known(way) for way in (one, hidden, 1 - hidden))
 def is_only_a_part(self, number):
  known = self.known[number]
  return bool(known) and all(self._reference.rights[one].is_part for one in known)
 def _vouched(self):
  found = set()
  for number in reversed(range(len(self.made))):
   is_right = self.known[number] and not self.neutral[number] and not self.mask[number]
   if (is_right or number in found) and self.made[number].operator not in _CUTTING:
    found.update(self.made[number].inputs)
  return found
 def _well_used(self):
  users = [list() for _ in self.made]
  for number, one in enumerate(self.made):
   for other in one.inputs:
    users[other].append(number)
  found = [False] * len(self.made)
  for number in reversed(range(len(self.made))):
   found[number] = bool(users[number]) and all(
    found[one] if self.is_shaping(one) else bool(self.known[one]) or one in self.comes_right
    for one in users[number]
   )
  return found
 def _taken_apart(self, number):
  first = self.made[number]
  found = list()
  if first.operator not in ("unbind", "select"):
   return found
  for one in range(number, len(self.made)):
   other = self.made[one]
   if (other.line, other.place, other.operator, other.inputs) != (
    first.line, first.place, first.operator, first.inputs
   ) or other.values.shape != first.values.shape:
    break
   found.append(one)
  return found
 def _is_neutral(self, made):
  values = made.values
  if not values.numel():
   return True
  if values.numel() == 1:
   return bool(values == values.round()) and all(self.neutral[one] for one in made.inputs)
  if bool((values != values.flatten()[0]).any()):
   return max(values.shape) == values.numel() and _counts(values)
  return _makes_new(made) or all(self.neutral[one] for one in made.inputs)
 def _is_mask(self, made):
  if not is_mask(made.values):
   return False
  if not bool((made.values > _FINITE).any()) or _makes_new(made):
   return True
  return bool(made.inputs) and all(self.neutral[one] or self.mask[one] for one in made.inputs)
 def _is_rearranged(self, values):
  numbers = values.flatten().sort().values
  return any(
   right.values.numel() == values.numel()
   and values.numel() > 1
   and not right.is_part
   and not right.is_mask
   and same(numbers, right.values.flatten().sort().values)
   and any(same(one, values) for one in rearranged(right.values, values.shape))
   for right in self._reference.rights
  )
 def _is_cut(self, values):
  rights = (right.values for right in self._reference.rights if not right.is_part and not right.is_mask)
  return any(_place_of(one, values.squeeze()) is not None for one in rights)

def rearranged(values, shape):
 squeezed = values.squeeze()
 if squeezed.dim() > _MOST_DIMS or values.numel() != shape.numel():
  return
 for order in permutations(range(squeezed.dim())):
  turned = squeezed.permute(order)
  if _merges(tuple(turned.shape), tuple(size for size in shape if size != 1)):
   yield turned.reshape(shape)

def _merges(sizes, into):
 left = list(sizes)
 for size in into:
  product = 1
  while product < size and left:
   product *= left.pop(0)
  if product != size:
   return False
 return not left

def _place_of(values, block):
 if not block.numel() or block.dim() > min(values.dim(), _MOST_DIMS):
  return None
 first = block.flatten()[0]
 starts = torch.nonzero((values - first).abs() <= TOLERANCE * (1 + first.abs()))
 for start in starts.tolist() if len(starts) <= _MOST_PLACES else ():
  for dims in combinations(range(values.dim()), block.dim()):
   sizes = dict(zip(dims, block.shape, strict=True))
   place = tuple(slice(at, at + sizes.get(dim, 1)) for dim, at in enumerate(start))
   cut = values[place]
   if cut.numel() == block.numel() and same(cut, block):
    return place
 return None

def _tells_nothing(values):
 if bool(values.isposinf().any()) or bool(values.isnan().any()):
  return True
 first = values.flatten()[:1]
 return values.numel() > 1 and bool(((values == first) | ((values - first).abs() <= _ALIKE)).all())

def _makes_new(made):
 return any(part in made.operator for part in _MAKE_NEW)

def _counts(values):
 return bool((values.flatten() == torch.arange(values.numel(), dtype=values.dtype)).all())

def _calls(made):
 calls = []
 for number, one in enumerate(made):
  before = made[number - 1] if number else None
  same_call = before is not None and (one.line, one.place, one.operator, one.inputs) == (
   before.line, before.place, before.operator, before.inputs
  )
  place = int(calls[-1][-1]) + 1 if same_call and one.inputs else 0
  calls.append((one.line, one.place, one.operator, place))
 return calls

@dataclass(frozen=True)
class Located:
 file: any
 lines: any
 made: any
 step: any
 expected: any
 right_so_far: any
 how: any
 sound: any
 watched: any
 is_inner: any = False
 results: any = None
 wanted: any = None

class Telling:
 def __init__(self, reference, standing):
  self._reference = reference
  self._standing = standing
  self._made = standing.made
 def located(
  self,
  lines,
  file,
  until,
  how,
  made,
  expected = None,
  *,
  step = "",
  proven = frozenset(),
  **more,
 ):
  own = [number for number, one in enumerate(self._made) if one.file == file]
  doubtful = {self._made[one].line for one in own if one not in proven and self._speaks_against(one)}
  watched = frozenset(self._made[one].line for one in own)
  places = tuple(dict.fromkeys(lines))
  right_so_far = self._steps(until, file)
  return Located(file, places, made, step, expected, right_so_far, how, watched - doubtful, watched, **more)
 def is_inner(self, number, same_line):
  standing, shape = self._standing, self._standing.made[number].values.shape
  later = [one for one in same_line if number in standing.before[one]]
  return any(not standing.is_shaping(one) or standing.made[one].values.shape != shape for one in later)
 def _speaks_against(self, number):
  standing = self._standing
  is_unknown_mask = standing.mask[number] and not standing.known[number] and number not in standing.comes_right
  return standing.may_be_wrong(number) or is_unknown_mask
 def _steps(self, until, file):
  steps = {}
  for number, known in enumerate(self._standing.known[:until]):
   for one in known if self._made[number].file == file else ():
    if step := self._reference.rights[one].step:
     steps.setdefault(step, self._made[number].line)
  return steps

def instead_of(reference, standing, number):
 if standing.well_used[number]:
  return
 made = standing.made[number]
 for right in _unrelated(reference, standing.known[number]):
  yield from ((right, values) for values in rearranged(right.values, made.values.shape))
  if made.operator in SHAPING and right.operator == "given" and right.values.dim() == made.values.dim():
   yield right, right.values

def pieces_of(reference, standing, group):
 if any(not standing.known[one] for one in group) and not standing.is_shaping(group[0]):
  return
 if all(standing.well_used[one] for one in group):
  return
 for which, places in standing.taken_from(group):
  of = reference.rights[which].values
  for right in _unrelated(reference, [which]):
   if right.values.shape == of.shape:
    shapes = [standing.made[one].values.shape for one in group]
    yield right, [right.values[at].reshape(to) for at, to in zip(places, shapes, strict=True)]
   elif right.operator == "given" and right.values.shape[:1] == of.shape[:1] == (len(group),):
    yield right, list(right.values)

def swapped(
 reference, standing, group
):
 if any(not standing.known[one] or standing.well_used[one] for one in group):
  return
 made, first = standing.made, group[0]
 for later in range(group[-1] + 1, len(made)):
  others = standing.apart(later) or [later]
  if made[later].line != made[first].line:
   return
  if len(others) != len(group) or any(not standing.known[n] or standing.well_used[n] for n in others):
   continue
  if first in standing.before[later] or made[later].values.shape != made[first].values.shape:
   continue
  pairs = list(zip(group, others, strict=True))
  if not all(same(made[one].values, made[other].values) for one, other in pairs):
   new = {one: made[other].values for one, other in pairs} | {other: made[one].values for one, other in pairs}
   yield reference.rights[standing.known[later][0]], new

def _unrelated(reference, known):
 numbers = [n for one in known if (n := reference.rights[one].number) is not None]
 is_given = any(_is_given(reference, reference.rights[one]) for one in known)
 found = list()
 for right in reference.rights:
  if right.is_part or right.is_mask:
   continue
  if is_given and _is_given(reference, right):
   found.append(right)
  elif right.number is not None and numbers:
   before = reference.before[right.number]
   if all(n != right.number and n not in before and right.number not in reference.before[n] for n in numbers):
    found.append(right)
 return found

def _is_given(reference, right):
 if right.operator == "given":
  return True
 if right.number is not None:
  return right.operator in SHAPING and not reference.before[right.number]
 given = (one.values for one in reference.rights if one.operator == "given" and not one.is_part)
 return any(one.shape == right.values.shape and same(one, right.values) for one in given)
another = types.SimpleNamespace(instead_of=instead_of, pieces_of=pieces_of, swapped=swapped)
MOST_ATTEMPTS, MOST_OF_A_SHAPE = 24, 6
MOST_TURNS, MOST_STEPS = 4, 6

@dataclass(frozen=True)
class Replacement:
 number: any
 right: any
 values: any
 replaced: any
 is_swap: any = False

def replacements(reference, standing, number):
 turns = standing.turns(number)
 found = iter(())
 group = standing.apart(number) or (turns if len(turns) > 1 and number == turns[0] else [])
 if group:
  pieces = another.pieces_of(reference, standing, group)
  if any(map(standing.is_unknown, group)):
   pieces = chain(_in_their_places(reference, standing, group), pieces)
  found = (Replacement(number, right, some[0], dict(zip(group, some, strict=True))) for right, some in pieces)
 if len(turns) == 1 or standing.is_shaping(number):
  alone = (
   Replacement(number, right, values, {number: values})
   for right, values in _in_its_place(reference, standing, number)
  )
  found = chain(found, alone)
 swapped = (
  Replacement(number, right, new[number], new, is_swap=True)
  for right, new in another.swapped(reference, standing, group or [number])
 )
 return islice(chain(found, swapped), MOST_OF_A_SHAPE if _only_reshapes(standing, number) else MOST_ATTEMPTS)

def _only_reshapes(standing, number):
 return standing.is_shaping(number) and any(map(standing.is_unknown, standing.made[number].inputs))

def _in_their_places(reference, standing, turns):
 made = [standing.made[one].values for one in turns]
 shape = made[0].shape
 is_even = all(one.shape == shape for one in made)
 if is_even:
  yield from _steps_in_turn(reference, shape, len(turns))
  if len(turns) == len(reference.result) and all(one.shape == shape for one in reference.result):
   yield Right(reference.result[0], ""), reference.result
 wholes = [right for right in reference.rights if not right.is_part and not right.is_mask]
 for right in wholes if is_even else ():
  if right.values.numel() != len(turns) * shape.numel():
   continue
  squeezed = right.values.squeeze()
  for order in permutations(range(squeezed.dim())):
   turned = squeezed.permute(order)
   if turned.shape[turned.dim() - len(without_ones(shape)) :] == without_ones(shape):
    yield right, list(turned.reshape(len(turns), *shape))
 for right in wholes:
  for dim, size in enumerate(right.values.shape):
   if size == len(turns) and (pieces := _cut_to(right.values.split(1, dim), dim, made)):
    yield right, pieces

def _cut_to(slices, dim, made):
 found = list()
 for piece, there in zip(slices, made, strict=True):
  whole = piece if piece.dim() == there.dim() else piece.squeeze(dim)
  sizes = there.shape
  if whole.dim() != len(sizes) or any(size > of for size, of in zip(sizes, whole.shape, strict=True)):
   return []
  found.append(whole[tuple(slice(size) for size in sizes)])
 return found

def _steps_in_turn(reference, shape, turns):
 steps = [right for right in reference.rights if right.step and right.values.numel() == shape.numel()]
 if not 1 < turns <= MOST_TURNS or len(steps) > MOST_STEPS:
  return
 for some in combinations(sorted(steps, key=lambda one: one.number or 0), turns):
  if len({right.values.shape for right in some}) != 1:
   continue
  for order in permutations(range(some[0].values.dim())):
   turned = [right.values.permute(order) for right in some]
   if without_ones(turned[0].shape) == without_ones(shape):
    yield some[0], [one.reshape(shape) for one in turned]
  if some[0].values.shape != shape:
   yield some[0], [right.values for right in some]

def _in_its_place(reference, standing, number):
 made = standing.made[number]
 if standing.mask[number] or _is_last_constant(standing, number):
  yield from _masks(reference, made)
  return
 if standing.neutral[number]:
  if standing.is_new(number) and made.values.numel() > 1:
   filled = (torch.full_like(made.values, one) for one in (0.0, 1.0))
   yield from ((Right(one, ""), one) for one in filled if not torch.equal(one, made.values))
  return
 if standing.scaled[number]:
  yield from ((Right(one, "mul"), one.reshape(made.values.shape)) for one in _scaled_alike(reference, made))
  return
 if number in standing.comes_right and not standing.known[number]:
  return
 seen = [made.values]
 if standing.known[number]:
  ways = another.instead_of(reference, standing, number)
 else:
  ways = ((right, one) for right in _likely(reference, standing, made) for one in _arrangements(right, made))
 for right, values in ways:
  if not any(one.shape == values.shape and same(one, values) for one in seen):
   seen.append(values)
   yield right, values

def _likely(reference, standing, made):
 present = {right for known in standing.known for right in known}
 wanted = [(n, right) for n, right in enumerate(reference.rights) if not right.is_part and not right.is_mask]
 wanted.sort(key=lambda one: (one[1].number is None, one[0] in present, one[1].operator != made.operator))
 scaled = [Right(one, "mul") for one in reference.scaled if one.numel() == made.values.numel()]
 own = [right for _, right in wanted if right.number is not None]
 return [*own, *scaled, *(right for _, right in wanted if right.number is None)]

def _scaled_alike(reference, made):
 squeezed = made.values.squeeze()
 alike = [one for one in reference.scaled if one.shape == squeezed.shape]
 return [one for one in alike if not bool(torch.isclose(one, squeezed, rtol=1e-4, atol=1e-6).any())]

def _is_last_constant(standing, number):
 made = standing.made[number]
 if made.values.dim() < 2 or made.values.numel() < 2 or not standing.neutral[number]:
  return False
 return not any(
  number in standing.before[later] and standing.mask[later] for later in range(number + 1, len(standing.made))
 )

def _masks(reference, made):
 seen = [made.values]
 shape = without_ones(made.values.shape)
 there = made.values[made.values != 0].flatten()[:1].tolist() or [1.0]
 fills = [there[0], -there[0]] if abs(there[0]) > LARGE else there
 for hidden in reference.hidden:
  if tuple(hidden.shape) != shape[max(len(shape) - hidden.dim(), 0) :]:
   continue
  for filled in fills:
   for one in (hidden, ~hidden):
    values = torch.where(one, filled, 0.0).to(made.values.dtype).expand(shape).reshape(made.values.shape)
    if not any(torch.equal(other, values) for other in seen):
     seen.append(values)
     yield Right(hidden, ""), values

def _arrangements(right, made):
 values, shape = right.values, made.values.shape
 turned = list(rearranged(values, shape))
 yield from turned
 if values.shape != shape and (turned or values.numel() == shape.numel() or right.operator == made.operator):
  yield values
MAX_RUNS = 120
_MAX_FIRST = 16

@dataclass(frozen=True)
class Mended:
 by: any
 proven: any
 is_last: any
 made: any

class Mending:
 def __init__(self, reference, run, standing, again):
  self._reference = reference
  self._run = run
  self._standing = standing
  self._again = again
  self._left = MAX_RUNS
 @property
 def is_over(self):
  return self._left <= 0
 def at(self, number):
  for one in replacements(self._reference, self._standing, number):
   run = self._attempt(one.replaced)
   if run is None:
    return None
   if self._reference.is_right(run):
    return Mended(one, *self._flow(run, one), run.made)
  return None
 def comes_right(self, replaced):
  run = self._attempt(replaced)
  return run is not None and self._reference.is_right(run)
 def at_first(self, numbers):
  attempts = 0
  for number in numbers:
   for one in replacements(self._reference, self._standing, number):
    attempts += 1
    run = self._attempt(one.replaced)
    if run is None or attempts > _MAX_FIRST:
     return None
    if run.error is None and self._comes_right_later(run, one):
     return one
  return None
 def _comes_right_later(self, run, first):
  standing = Standing(self._reference, run.made)
  if not any(self._is_newly_right(number, standing, first) for number in range(first.number + 1, len(run.made))):
   return False
  for number in range(first.number + 1, len(run.made)):
   if not standing.is_unknown(number) or first.number not in standing.before[number]:
    continue
   for one in replacements(self._reference, standing, number):
    again = self._attempt({**first.replaced, **one.replaced})
    if again is None:
     return False
    if self._reference.is_right(again):
     return True
  return False
 def _is_newly_right(self, number, standing, first):
  made = standing.made[number]
  if not standing.known[number] or standing.neutral[number] or standing.mask[number]:
   return False
  if standing.is_shaping(number) or first.number not in standing.before[number]:
   return False
  is_new = number >= len(self._run.made) or not self._standing.known[number]
  return is_new and made.line != self._run.made[first.number].line
 def _attempt(self, replaced):
  if self._left <= 0:
   return None
  self._left -= 1
  return self._again(replaced)
 def _flow(self, run, by):
  pending = made_last(run)
  is_last = any(number in by.replaced for number in pending)
  proven = set()
  while pending:
   number = pending.pop()
   if number not in by.replaced and number not in proven:
    proven.add(number)
    pending += run.made[number].inputs
  before = self._run.made
  is_same = [
   (one.line, one.place) == (other.line, other.place) for one, other in zip(run.made, before, strict=False)
  ]
  return frozenset(one for one in proven if one < len(is_same) and is_same[one]), is_last

def made_last(run):
 results = list(tensors_in(run.result))
 return [
  number
  for number, made in enumerate(run.made)
  if any(one.shape == made.values.shape and same(one, made.values) for one in results)
 ]

class Returned:
 def __init__(self, reference, run, standing, telling):
  self._reference = reference
  self._run = run
  self._made = run.made
  self._standing = standing
  self._telling = telling
 def of_another_kind(self):
  results = list(tensors_in(self._run.result))
  if self._run.error is not None or self._run.returned is None or len(results) == len(self._reference.result):
   return None
  file, line = self._run.returned
  doubtful = {one.line for number, one in enumerate(self._made) if self._standing.may_be_wrong(number)}
  if results and doubtful - {line}:
   return None
  first = results[0].detach() if results else None
  return self._telling.located(
   [line], file, len(self._made), "of another kind", first,
   results=len(results), wanted=len(self._reference.result),
  )
 def too_early(self):
  results = list(tensors_in(self._run.result))
  if self._run.error is not None or self._run.returned is None or len(results) != len(self._reference.result):
   return None
  standing, last = self._standing, made_last(self._run)
  behind = set(last).union(*(standing.before[number] for number in last))
  if any(standing.may_be_wrong(number) for number in behind):
   return None
  if any(standing.is_only_a_part(number) for number in behind.difference(last)):
   return None
  if any(map(self._adds_up, behind)) or self._is_one_result_twice(results):
   return None
  for one, right in zip(results, self._reference.result, strict=True):
   if one.shape == right.shape and same(one, right):
    continue
   if (
    is_mask(one)
    or self._is_an_argument(one, behind)
    or not (self._reference.known(one) or (behind and all(map(standing.is_new, behind))))
   ):
    return None
   file, line = self._run.returned
   return self._telling.located([line], file, len(self._made), "returned", one, right)
  return None
 def _adds_up(self, number):
  standing = self._standing
  return not standing.is_shaping(number) and any(one in standing.before[number] for one in standing.turns(number))
 def _is_one_result_twice(self, results):
  found = [set(self._reference.known(one)) for one in results]
  return any(one & other for one, other in combinations(found, 2))
 def _is_an_argument(self, one, behind):
  is_given = any(self._reference.rights[n].operator == "given" for n in self._reference.known(one))
  return is_given and len({self._made[number].line for number in behind}) > 1
_MAX_UNUSED = 4

def locate(reference, again):
 run = again({})
 found = None if reference.is_right(run) else _Search(reference, run, again).found()
 return None if found is None or found.how in reference.case.untold else found

class _Search:
 def __init__(self, reference, run, again):
  self._reference = reference
  self._run = run
  self._made = run.made
  self._standing = Standing(reference, run.made)
  self._mending = Mending(reference, run, self._standing, again)
  self._telling = Telling(reference, self._standing)
  self._returned = Returned(reference, run, self._standing, self._telling)
 def found(self):
  return self._returned.of_another_kind() or self._unused() or self._by_mending()
 def _by_mending(self):
  mended = None
  before = self._standing.before
  for number in range(len(self._made)):
   if mended and (before[number].intersection(mended.by.replaced) or not self._is_apart(number, mended)):
    continue
   mended = self._mending.at(number) or mended
   if mended and len(mended.by.replaced) == 1:
    break
  if self._mending.is_over:
   return self._in_the_only_line() if mended is None else None
  located = (mended and self._located(mended)) or self._in_the_only_line() or self._returned.too_early()
  if located is None and (mended is None or mended.is_last):
   return self._first_of_two()
  return located
 def _is_apart(self, number, mended):
  standing = self._standing
  went_in = any(number in standing.before[one] for one in mended.by.replaced)
  return not standing.known[number] and not (went_in and len(standing.turns(number)) > 1)
 def _located(self, mended):
  standing, right = self._standing, mended.by.right
  number, made = mended.by.number, self._made[mended.by.number]
  before = frozenset().union(*(standing.before[one] for one in mended.by.replaced))
  elsewhere = {one for one in before if self._place(one) != self._place(number)}
  if any(self._stays_doubtful(one, mended) or self._is_odd(one, mended) for one in elsewhere):
   return None
  is_mask_turned, is_another = standing.is_known_mask(number), bool(standing.known[number])
  if is_another and made.values.numel() == 1 and not mended.by.is_swap:
   return None
  concerned = [number]
  if is_mask_turned:
   chain = [one for one in standing.before[number] if standing.mask[one]] + sorted(self._users(number))
   concerned += [one for one in chain if not (standing.mask[one] and standing.is_shaping(one))]
  if mended.by.is_swap:
   concerned += [user for one in mended.by.replaced for user in self._first_users(one)]
  places = list(dict.fromkeys(map(self._place, sorted(concerned))))
  if len(places) > 2 or any(file != made.file for file, _ in places):
   return None
  is_alone = len(standing.turns(number)) == 1 == len(places)
  is_missing = is_alone and not is_another and self._is_missing_before(right)
  if is_missing:
   known = self._too_early(number) or elsewhere
   places = list(dict.fromkeys([*self._last_known(known, made.file), *places]))
  how = "swapped" if mended.by.is_swap else "mask" if is_mask_turned else "another" if is_another else "mended"
  there, needed, step, is_inner = self._in_the_end(number, mended)
  return self._telling.located(
   [line for _, line in places], made.file, number, "missing" if is_missing else how, there, needed,
   step=step, is_inner=is_inner, proven=mended.proven,
  )
 def _too_early(self, number):
  standing, found = self._standing, set()
  seen, pending = set(), list(self._made[number].inputs)
  while pending:
   one = pending.pop()
   if one in seen:
    continue
   seen.add(one)
   if not standing.known[one] or standing.is_shaping(one):
    pending += self._made[one].inputs
   if standing.known[one] and self._place(one) != self._place(number) and not standing.neutral[one]:
    uses = {_kind_in_locating(self._made[user].operator) for user in self._first_users(one)}
    if (right := self._uses_of(one)) and not uses & right:
     found.add(one)
  return found
 def _uses_of(self, number):
  reference = self._reference
  operators = {right.number: right.operator for right in reference.rights if right.number is not None}
  pending = [reference.rights[one].number for one in self._standing.known[number]]
  found, seen = set(), set()
  while pending:
   one = pending.pop()
   for later, inputs in reference.inputs.items():
    if one in inputs and later not in seen and later in operators:
     seen.add(later)
     if operators[later] in SHAPING:
      pending.append(later)
     else:
      found.add(_kind_in_locating(operators[later]))
  return found
 def _last_known(self, among, file):
  standing = self._standing
  known = [n for n in among if standing.known[n] and not standing.mask[n] and not standing.neutral[n]]
  return [self._place(max(own))] if (own := [n for n in known if self._made[n].file == file]) else []
 def _place(self, number):
  return self._made[number].file, self._made[number].line
 def _in_the_end(self, number, mended):
  made, needed, right = self._made[number], mended.by.values, mended.by.right.values
  named = self._next_step(mended.by.right)
  later_turn = min((turn for turn in self._standing.turns(number) if turn > number), default=len(self._made))
  same_line = [n for n in range(number, later_turn) if self._place(n) == self._place(number)]
  for last in reversed(same_line) if self._standing.neutral[number] else ():
   there, mend = self._made[last], mended.made[last] if last < len(mended.made) else made
   is_other = mend.values.shape == there.values.shape and not same(mend.values, there.values)
   if is_other and (mend.line, mend.place) == (there.line, there.place):
    return there.values, mend.values, "", False
  for last in (n for n in reversed(same_line) if n == number or number in self._standing.before[n]):
   one = self._made[last]
   if named and one.values.shape == named.values.shape and _are_alike(one.operator, named.operator):
    told = named.values if alone_fits(named.values, one.values) else None
    return one.values, told, named.step, self._telling.is_inner(last, same_line)
  for last in reversed(same_line) if needed.shape == made.values.shape else ():
   one = self._made[last]
   if one.values.numel() == needed.numel() and same(one.values, made.values):
    made, needed, number = one, needed.reshape(one.values.shape), last
    break
  is_step = named is not None and named.number == mended.by.right.number
  is_turned = right.numel() == needed.numel() and without_ones(right.shape) != without_ones(made.values.shape)
  is_told = not is_turned and alone_fits(needed, made.values)
  step = named.step if named and is_step else ""
  return made.values, needed if is_told else None, step, self._telling.is_inner(number, same_line)
 def _stays_doubtful(self, number, mended):
  if not self._standing.may_be_wrong(number) or number in mended.proven:
   return False
  is_computed = not self._standing.is_shaping(mended.by.number)
  return mended.is_last or not is_computed or not self._standing.is_plausible(number)
 def _is_odd(self, number, mended):
  return self._standing.is_odd(number) and number not in mended.proven
 def _is_missing_before(self, right):
  if right.number is None:
   return False
  there = {self._reference.rights[one].number for known in self._standing.known for one in known}
  return any(one not in there for one in self._reference.inputs[right.number])
 def _next_step(self, right):
  if right.number is None:
   return None
  before = self._reference.before
  steps = [one for one in self._reference.rights if one.step and one.number is not None]
  later = [one for one in steps if one.number == right.number or right.number in before[one.number or 0]]
  return min(later, key=lambda one: one.number or 0, default=None)
 def _first_users(self, number):
  shapes, found = {number}, list()
  for later in range(number + 1, len(self._made)):
   if shapes.intersection(self._made[later].inputs):
    (shapes.add if self._standing.is_shaping(later) else found.append)(later)
  return found
 def _users(self, number):
  masks, users = {number}, set()
  for later in range(number + 1, len(self._made)):
   if masks.intersection(self._made[later].inputs):
    users.add(later)
    if self._standing.mask[later]:
     masks.add(later)
  return users
 def _in_the_only_line(self):
  if self._run.error is not None:
   return None
  standing, last = self._standing, made_last(self._run)
  behind = set(last).union(*(standing.before[number] for number in last)) if last else set(range(len(self._made)))
  doubtful = sorted(
   number
   for number in behind
   if standing.may_be_wrong(number) or (standing.mask[number] and number not in standing.comes_right)
  )
  if not doubtful and all(standing.neutral[number] for number in behind):
   doubtful = sorted(number for number in behind if not standing.is_new(number))
  if not doubtful or len({self._place(number) for number in doubtful}) > 1:
   return None
  if any(self._goes_through_parts(number) for number in doubtful):
   return None
  made = self._made[doubtful[-1]]
  if any(standing.is_odd(number) and self._made[number].line != made.line for number in behind):
   return None
  return self._telling.located([made.line], made.file, doubtful[0], "one line", made.values)
 def _goes_through_parts(self, number):
  standing, made = self._standing, self._made[number]
  if standing.is_shaping(number) or len(standing.turns(number)) == 1:
   return False
  return any(standing.is_only_a_part(one) and self._made[one].line != made.line for one in made.inputs)
 def _first_of_two(self):
  if self._run.error is not None:
   return None
  standing = self._standing
  frontier = [
   number
   for number in range(len(self._made))
   if standing.is_unknown(number) and not any(map(standing.may_be_wrong, standing.before[number]))
  ]
  if not frontier:
   return None
  line = self._made[frontier[0]].line
  first = self._mending.at_first(number for number in frontier if self._made[number].line == line)
  if first is None or not alone_fits(first.values, self._made[first.number].values):
   return None
  made = self._made[first.number]
  is_inner = self._telling.is_inner(
   first.number, [n for n in range(len(self._made)) if self._made[n].line == line]
  )
  return self._telling.located(
   [line], made.file, first.number, "first of two", made.values, first.values, is_inner=is_inner
  )
 def _unused(self):
  standing = self._standing
  last = set(made_last(self._run))
  used = last.union(*(standing.before[number] for number in last)) if last else set(range(len(self._made)))
  left = _MAX_UNUSED
  for number, made in enumerate(self._made):
   if number in used or not standing.known[number] or standing.neutral[number] or standing.mask[number]:
    continue
   for one in made.inputs:
    later = [n for n in used if n > number and one in self._made[n].inputs]
    if not later or standing.neutral[one] or standing.mask[one] or left <= 0:
     continue
    left -= 1
    if self._mending.comes_right({one: made.values}):
     there, user = self._made[one].values, self._made[min(later)]
     if user.file != made.file:
      return None
     return self._telling.located(
      [made.line, user.line], made.file, number, "unused", there, made.values
     )
  return None

def _kind_in_locating(operator):
 return "mm" if operator in ("bmm", "mv", "dot", "addmm", "baddbmm") else operator

def _are_alike(one, other):
 return one == other or {one, other} <= SHAPING
_LONGEST_in_used = 10_000
_MOST_in_used = 4

def used_from_above(lines, line, watched, others = ()):
 code = "\n".join(map(str.rstrip, lines))
 if len(code) > _LONGEST_in_used:
  return ""
 try:
  with warnings.catch_warnings():
   warnings.simplefilter("ignore")
   tree = ast.parse(code)
 except (SyntaxError, ValueError, RecursionError, MemoryError):
  return ""
 statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
 around = [node for node in statements if node.lineno <= line <= (node.end_lineno or 0)]
 if not around:
  return ""
 first = around[-1].lineno
 local = [
  (name, at)
  for function in around
  if isinstance(function, ast.FunctionDef)
  for name, at in _stored(function)
  if "." not in name and at < first
 ]
 given, tensors = dict(local), {name for name, at in local if at in watched}
 given |= {name: at for name, at in _stored(tree) if "." in name and at != first}
 found = list(dict.fromkeys(name for name in _read_in_used(around[-1], line) if name in given))
 if tensors.issuperset(found):
  return ""
 found = [name for name in found if name not in tensors or given[name] in others]
 told = ", ".join(f"{name} (line {given[name]})" for name in found[:_MOST_in_used])
 return f"{told} and more" if len(found) > _MOST_in_used else told

def _stored(tree):
 for node in _names(tree):
  if isinstance(node.ctx, ast.Store):
   yield _called_in_used(node), node.lineno

def _read_in_used(statement, line):
 for node in _names(statement):
  is_there = node.lineno == line or not hasattr(statement, "body")
  if is_there and (isinstance(node.ctx, ast.Load) or isinstance(statement, ast.AugAssign)):
   yield _called_in_used(node)

def _names(tree):
 nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute) and _called_in_used(node)]
 return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))

def _called_in_used(node):
 if isinstance(node, ast.Name):
  return node.id
 return f"self.{node.attr}" if isinstance(node.value, ast.Name) and node.value.id == "self" else ""
MAX_LINE = 100
_SHOWN = 4
_SMALL = 1e-3
_AT_FAULT = ("mended", "missing", "first of two", "one line")
_ASSIGNED = re.compile(r"([\w.,\s*]+?)(?::[^=]*)?\s*(?:[-+*/@]|\*\*)?=(?!=)")

def told(located, case, source):
 wrong = located.lines[-1:] if located.how == "missing" else located.lines
 lines = source(located.file)
 def text(line):
  return line_of(lines, line)
 rows = _right_before(located, text)
 if len(wrong) > 1:
  rows.append((_lines(wrong), "they do not fit together"))
 elif located.step in _assigned(text(wrong[0])):
  rows.append((located.step, f"not as it should be  ({_lines(wrong)})"))
 else:
  rows.append((f"what {_lines(wrong)} {_does(located, case, text(wrong[0]))}", "not as it should be"))
 width = max(len(name) for name, _ in rows) + 1
 said = [f"{name + ':':{width}} {how}" for name, how in rows]
 said += [f"  line {line}: {shown}" for line in located.lines if (shown := quoted(text(line)))]
 said += _meaning(located, case)
 others = [line for step, line in located.right_so_far.items() if step not in _assigned(text(line))]
 others = [] if located.how == "one line" else others
 if located.how in _AT_FAULT and (used := used_from_above(lines, wrong[-1], located.watched, others)):
  said.append(f"If {_lines(wrong)} is right as it stands, look at what it uses: {used}.")
 said += _beside(located)
 said += [f"  {one}" for one in _seen_in_told(located)]
 return "\n".join([f"Where it goes wrong, tried on {call_in_words(case)}", *said])

def line_of(lines, number):
 return lines[number - 1] if 0 < number <= len(lines) else ""

def _right_before(located, text):
 found = list()
 whole = set()
 for step, line in located.right_so_far.items():
  if line in located.lines:
   continue
  if step in _assigned(text(line)):
   if step != located.step:
    found.append((step, f"as it should be      (line {line})"))
  elif line in located.sound - whole:
   found.append((f"what line {line} makes", "as it should be"))
   whole.add(line)
 return found

def _assigned(line):
 lefts = (_ASSIGNED.match(statement) for statement in line[:MAX_LINE].split(";"))
 return {name for left in lefts if left for name in re.findall(r"\w+", left[1])}

def _does(located, case, line):
 if located.how not in ("returned", "of another kind"):
  return "makes"
 return "keeps" if case.through and "return" not in line else "returns"

def _meaning(located, case):
 first, second = located.lines[0], located.lines[-1]
 is_one = first == second
 match located.how:
  case "missing" if not is_one:
   where = (
    f"A step of line {second} is wrong, or one is missing before it."
    if second == first + 1
    else f"Look at line {second}, and at what stands between the two: a step there is wrong, or missing."
   )
   return [f"What line {first} makes is right; what line {second} makes of it is not. {where}"]
  case "unused" if not is_one:
   return [
    f"What line {first} makes is right, but line {second} does not use it: "
                f"it goes on with what line {first} was given."
   ]
  case "mask" if not is_one:
   return [_of_mask(located)]
  case "swapped":
   where = f"between line {first} and line {second}" if not is_one else "in this line"
   return [f"Two tensors, each right in itself, stand in each other's places {where}: look at their order."]
  case "another" if _is_turned(located):
   return ["This mask is the other way round from what is needed here: turn it, as ~ does with a bool mask."]
  case "another":
   return ["What is there is right in itself, but it is the wrong one for this place: are two names mixed up?"]
  case "returned" if case.through:
   return [
    "What goes into it is right, but it is not all that is asked for: is something lost that was there, or "
                "is another name meant?"
   ]
  case "returned":
   return [
    "What goes into it is right, but it is not the result that is asked for: does it return too early, is "
                "a last step left out, or is another name meant?"
   ]
  case "of another kind":
   asked = _tensors_in_told(located.wanted)
   return [
    f"It returns {_tensors_in_told(located.results)}; {asked} {'is' if located.wanted == 1 else 'are'} asked for."
   ]
  case "first of two":
   return ["To mend this line is not enough: a later one goes wrong too, perhaps for the same reason."]
  case "one line":
   return ["The tensors that go into this line are right: look at the line itself."]
 return []

def _of_mask(located):
 first, second = located.lines
 made, needed = located.made, located.expected
 if made is not None and needed is not None and torch.equal(made == 0, needed == 0):
  return (
   f"The mask of line {first} is right in its places; what line {second} does with it needs other numbers "
            "there. Change one of the two lines."
  )
 return (
  f"Line {first} makes a mask, and line {second} takes it the other way round: what should be hidden is kept, "
        "and what should be kept is hidden. Change one of the two lines."
 )

def _is_turned(located):
 made, needed = located.made, located.expected
 if made is None or needed is None or made.shape != needed.shape or not is_mask(made):
  return False
 return torch.equal(made == 0, needed != 0)

def _tensors_in_told(number):
 return "no tensor" if not number else "one tensor" if number == 1 else f"{number} tensors"

def _lines(lines):
 return f"line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"

def quoted(line):
 line = line.strip()
 return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"

def call_in_words(case):
 if case.through:
  method, *read = case.through
  steps = range(0, len(case.arguments), len(read))
  each = (", ".join(map(_argument_in_told, case.arguments[n : n + len(read)])) for n in steps)
  return f"{case.exercise} after {' and '.join(f'{method}({step})' for step in each)}."
 args = ", ".join(map(_argument_in_told, case.arguments))
 built = "" if case.built is None else f"({', '.join(map(str, case.built))})"
 return f"{case.exercise}{built} with {args}." if built else f"{case.exercise}({args})."

def _argument_in_told(arg):
 if isinstance(arg, tuple | list) and any(isinstance(one, torch.Tensor) for one in arg):
  return f"({', '.join(map(_argument_in_told, arg))})"
 return f"a tensor of shape {tuple(arg.shape)}" if isinstance(arg, torch.Tensor) else repr(arg)[:MAX_LINE]

def _beside(located):
 made, needed, start = located.made, located.expected, 0
 above = ["On the way to its result, the line makes:"] if located.is_inner and made is not None else []
 if made is not None and needed is not None and made.shape == needed.shape and made.numel():
  apart = (comparable(made) - comparable(needed)).abs().flatten() > TOLERANCE * (
   1 + comparable(needed).abs().flatten()
  )
  start = int(apart.long().argmax())
 rows = above if made is None else [*above, f"  made:   {_tensor(made, start)}"]
 return rows if needed is None else [*rows, f"  needed: {_tensor(needed, start)}"]

def _tensor(values, start):
 if values.dim() == 0:
  return f"the number {float(values):.4g}"
 numbers = ", ".join(f"{number:.4g}" for number in (values + 0.0).flatten()[start : start + _SHOWN].tolist())
 more = ", …" if values.numel() > start + _SHOWN else ""
 place = (torch.arange(values.numel()).view(values.shape) == start).nonzero()[0].tolist() if start else []
 where = f"from {place} on" if start else "beginning with"
 return f"shape {tuple(values.shape)}, {where} {numbers}{more}" if numbers else f"shape {tuple(values.shape)}"

def _seen_in_told(located):
 made, needed = located.made, located.expected
 if made is None or needed is None or made.shape != needed.shape or made.dim() == 0 or not made.numel():
  return []
 made, needed = made.double(), needed.double()
 if bool(made.isnan().any()) and not bool(needed.isnan().any()):
  of = "infinity - infinity, 0 * infinity, 0 / 0 and the root of a negative number"
  return [f"There are NaN in it: {of} give them."]
 if is_mask(made) or is_mask(needed):
  is_turned = located.how == "mask" and torch.equal(made == 0, needed != 0)
  return ["It is the other way round: 0 where something else is needed, and the reverse."] if is_turned else []
 return [*_of_rows(made, needed), *_of_a_factor(made, needed)]

def _of_rows(made, needed):
 sums = torch.stack([made, needed]).sum(dim=-1)
 if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
  return []
 largest, should = float(made.amax(dim=-1).mean()), float(needed.amax(dim=-1).mean())
 if abs(largest - should) < 0.02 or not torch.equal(made == 0, needed == 0):
  return []
 how = "too even" if largest < should else "too uneven"
 if made.dim() == 1:
  return [f"They sum to 1, but are {how}: the largest is {largest:.2f}, and should be {should:.2f}."]
 return [f"Each row sums to 1, but they are {how}: the largest of a row is {largest:.2f}, and should be {should:.2f}"
            ", on average."]

def _of_a_factor(made, needed):
 there = needed.isfinite() & made.isfinite() & (needed.abs() > 1e-6)
 if int(there.sum()) < 2 or not torch.equal(needed.isfinite(), made.isfinite()):
  return []
 ratio = made[there] / needed[there]
 factor = float(ratio[0])
 if (
  not torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-3)
  or abs(factor) < _SMALL
  or abs(factor - 1) < _SMALL
 ):
  return []
 return [f"It is {factor:.4g} times what is needed."]
BY_HAND = {
 "shifted": lambda values: values - values.amax(dim=-1, keepdim=True),
 "exponentials": torch.exp,
 "sums": lambda values: values.sum(dim=-1, keepdim=True),
}
OUT_OF_SCALE = {-(2**23): -torch.inf, 2**23 - 1: torch.inf, 1 - 2**23: torch.nan}
LARGEST = 2**23 - 2

def read_reference(written, operators, case):
 given = given_in(case)
 rights = []
 for one in written["rights"]:
  operator = operators[one["operator"]]
  rights.append(Right(read_tensor(one, given, rights), operator, one.get("number"), one.get("step", "")))
 return Reference(
  case,
  [read_tensor(one, given, rights) for one in written["result"]],
  distinct([*rights, *parts_of(rights)]),
  {number: frozenset(numbers) for number, numbers in enumerate(written["before"])},
  dict(enumerate(written["inputs"])),
  [rights[of].values.squeeze() * by for of, by in written["scaled"]],
 )

def given_in(case):
 found = [arg for arg in case.arguments if isinstance(arg, torch.Tensor)] + list((case.parameters or {}).values())
 return [one.double() for one in found]

def read_tensor(written, given, earlier):
 if "given" in written or "of" in written:
  values = given[written["given"]] if "given" in written else earlier[written["of"]].values
  return _made_of(values, written)
 if "whole" in written:
  return torch.tensor(written["whole"], dtype=torch.float64).reshape(written["shape"])
 return numbers_in(written).reshape(written["shape"])

def _made_of(values, written):
 if "by hand" in written:
  return BY_HAND[written["by hand"]](values)
 if "part" in written:
  values = values.narrow(*written["part"])
 if "order" in written:
  values = values.squeeze().permute(written["order"])
 values = values.reshape(written.get("shape", values.shape)) * written.get("times", 1.0)
 if "filled" in written:
  hidden = torch.tensor([digit == "1" for digit in f"{int(written['hidden'], 16):0{values.numel()}b}"])
  values = torch.where(hidden.reshape(values.shape), float(written["filled"]), values)
 return values

def numbers_in(written):
 held = torch.frombuffer(bytearray(base64.b85decode(written["packed"])), dtype=torch.uint8)
 if "unit" not in written:
  return held.view(torch.float32).double()
 first, second, third = held.reshape(-1, 3).long().unbind(1)
 counts = first + (second << 8) + (third << 16) - 2**23
 values = counts.double() * float(written["unit"])
 for count, said in OUT_OF_SCALE.items():
  values[counts == count] = said
 return values
_ENDS = {
 CUT_BY_DETACH: "what `.detach()` gives carries no gradient.",
 CUT_BY_DATA: "what `.data` gives carries no gradient.",
 CUT_BY_NO_GRAD: "what is computed without gradients carries none.",
 CUT_BY_NUMBERS: "plain numbers carry no gradient, and nothing that is made of them does.",
 OF_OTHERS: "what is made there carries no gradient.",
}
HOW = {*_ENDS, BY_CAST, OF_NOTHING}

def told_of_aspect(aspect, details, lost, case, line):
 said = [f"Where it goes wrong, tried on {call_in_words(case)}", f"line {lost.line}: {_does_in_told_of_aspects(aspect, details)}"]
 return "\n".join([*said, f"  line {lost.line}: {quoted(line)}", _meaning_in_told_of_aspects(aspect, details, lost.how)])

def _does_in_told_of_aspects(aspect, details):
 if aspect == OF_WRITING:
  return f"writes into {_argument_in_told_of_aspects(details[0])}"
 if aspect == OF_DTYPE:
  return f"makes numbers in torch.{details[0]}, of which the result is made"
 if aspect == OF_GRADIENT:
  return f"ends the way of the gradient to {_argument_in_told_of_aspects(details[0])}"
 return "makes a tensor that stays on the CPU when the inputs are elsewhere"

def _meaning_in_told_of_aspects(aspect, details, how):
 if aspect == OF_WRITING:
  return "Whoever calls it has that tensor too. Make a new one of it, or write into a copy (`.clone()`)."
 if aspect == OF_GRADIENT:
  return f"A gradient goes back the way that the numbers came: {_ENDS[how]}"
 if aspect == OF_DTYPE:
  return _of_dtype_in_told_of_aspects(details[0], details[1], how)
 assert aspect == OF_DEVICE
 if how == OF_NOTHING:
  return "What is made of nothing is on the CPU, unless `device=` says where: that of the inputs is wanted."
 return "What follows should be where the inputs are."

def _of_dtype_in_told_of_aspects(found, wanted, how):
 made = "A new tensor has the dtype that it is made with (`dtype=`). " if how == OF_NOTHING else ""
 end = " It may be so on the way, if it is brought back at the end." if found == "float64" else ""
 return f"{made}The result should be torch.{wanted}.{end}"

def _argument_in_told_of_aspects(where):
 return f"the {ORDINALS[int(where)]} argument" if where.isdigit() else f"`{where}`"
_PRODUCT = (
 "A matrix product joins the last dimension of the left with the last but one of the right (of a vector, the only "
    "one), which have to be equal: here {} meets {}. Is one of them to be turned, or should they change places?"
)
_NUMBER_BY_NUMBER = (
 "Where tensors meet number by number, and in the leading dimensions of a product, sizes have to be equal, or 1: "
    "here {} meets {}. Is one of them turned the wrong way, or larger than the part that is needed here?"
)
_DTYPES = "Tensors of two dtypes meet: is one made here that should have the dtype of the inputs?"
_LEAF = (
 "Of an argument make a new tensor: `x = x + ...` in place of `x += ...`. A parameter can be changed where no "
    "gradients are recorded: under `with torch.no_grad():`."
)
_MEANT = (
 (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _PRODUCT),
 (r"mat \(\d+x(\d+)\), vec \((\d+)\)", _PRODUCT),
 (r"batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]", _PRODUCT),
 (r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _NUMBER_BY_NUMBER),
 (r"to have the same dtype, but got|must have the same dtype, but got|expected scalar type", _DTYPES),
 (r"a leaf Variable that requires grad is being used in an in-place operation", _LEAF),
)

def meant(message):
 for pattern, sentence in _MEANT:
  found = re.search(pattern, message)
  if found and len(set(found.groups())) == len(found.groups()):
   return sentence.format(*found.groups())
 return ""

def _noted(name):
 library = library_of(name)
 if library:
  note(library)

class _OperatorsWatched(OperatorMode):
 def __torch_dispatch__(
  self,
  func,
  types,
  args = (),
  kwargs = None,
 ):
  _noted(name_of(func))
  return func(*args, **(kwargs or {}))

class _FunctionsWatched(TorchFunctionMode):
 def __torch_function__(
  self,
  func,
  types,
  args = (),
  kwargs = None,
 ):
  _noted(getattr(func, "__name__", ""))
  return func(*args, **(kwargs or {}))

@contextmanager
def libraries_watched(found):
 taken()
 with _FunctionsWatched(), _OperatorsWatched():
  yield
 found.update(taken())

def exceeded(cost, limits):
 spent = {
  "largest": cost.largest.count,
  "alive": cost.alive.count,
  "rows": cost.rows.count,
  "operations": cost.operations,
 }
 return [name for name, most in limits.items() if spent[name] > most]

def complaint(cost, limits, at):
 for name in exceeded(cost, limits):
  most = limits[name]
  match name:
   case "largest":
    found = cost.largest
    return f"There is a tensor of shape {found.of}{at(found)}: {_numbers_in_costs(found, most)}"
   case "alive":
    return f"The tensors that are held at once{at(cost.alive)} have {_numbers_in_costs(cost.alive, most)}"
   case "rows":
    found = cost.rows
    return f"`{found.of}` is multiplied with {found.count:,} rows{at(found)}; {most:,} are needed."
  return f"It takes {cost.operations:,} operations; {most:,} are enough."
 return ""

def _numbers_in_costs(found, most):
 return f"{found.count:,} numbers; {most:,} are enough."
NOT_FINITE = "Some weights are NaN or infinite. Is a whole row hidden, or something divided by 0?"
NONE_DROPPED = "No weight is dropped: none is 0."
ALL_DROPPED = "Every weight is dropped."
TURNED_ROUND = "A share of 1-p is dropped, and p is kept: it is the other way round."
ANOTHER_SHARE = "The share of the weights that is dropped is not p."
NOT_RESCALED = "The kept weights are as they were; divide them by 1-p, so that their sum stays as it was."
CHANGED = "Not all of the kept weights are divided by 1-p."
NOT_THE_WEIGHTS = "Numbers of the values or of the result are dropped; it is weights that should be."
WRONG_ALREADY = "The result is wrong in evaluation already, where nothing should be dropped; mend that first."
DETACHED = "No gradient arrives at the weights: is the result detached from them somewhere?"

def always_as_many(calls):
 return (
  f"In {calls} calls the same number of weights is dropped each time. Each weight is dropped with probability p, "
        "whatever becomes of the others: how many fall is chance."
 )

def mistakes_alike(
 names, examples, passed, mistakes
):
 pattern = as_pattern(examples, passed)
 shown = {}
 for mistake in mistakes:
  at = mistake.get("at")
  if mistake.get("passes", pattern) != pattern:
   continue
  if at not in shown:
   shown[at] = numbers(names, public(examples) if at is None else [examples[at]])
  if alike(shown[at], mistake["shows"]):
   return list(mistake["sentences"])
 return []

def public(examples):
 return [example for example in examples if example.get("public", True)]

def as_pattern(examples, passed):
 tried = zip(examples, passed, strict=True)
 return "".join("01"[right] for example, right in tried if not _stands_apart(example))

def _stands_apart(example):
 return "device" in example.get("looks_at", ()) or any("refuses" in step for step in example["steps"])

def numbers(names, examples, dtype = None):
 rows = []
 for example in examples:
  row = []
  try:
   with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for step, function, args in _calls_in_known(names, example["steps"], dtype):
     if "hunt" in step:
      row += _hunted(names, function(), step["hunt"])
     elif step["operation"] == "cost":
      row += _spent(function, args, step)
     elif "part" in step or ("with" in step and "instance" in step):
      row += _once(function, args, step.get("named", {}))
     else:
      row += _observed(function, args, step.get("named", {}))
  except KeyboardInterrupt:
   raise
  except BaseException as error:
   row.append(_checksum(type(error).__name__))
  rows.append([number if isinstance(number, int) else round(number, 5) for number in row])
 return rows

def alike(one, other):
 return all(
  len(row) == len(other_row) and all(map(near, row, other_row)) for row, other_row in zip(one, other, strict=True)
 )

def sums(value):
 return _described(value)[1]

def near(one, other):
 if isinstance(one, int) or isinstance(other, int):
  return one == other
 return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))

def _calls_in_known(
 names, steps, dtype = None
):
 seed_in_use(0)
 built = []
 for step in steps:
  args = [_in(as_value(arg), dtype) for arg in step.get("args", ())]
  if step["operation"] == "manual_seed":
   seed_in_use(step["seed"])
  elif step["operation"] == "build":
   made = names[step["name"]](*args, **step.get("named", {}))
   built.append(made if dtype is None or step.get("plain") else made.to(dtype))
  elif step["operation"] == "assemble":
   built.append(assembled(step) if dtype is None else assembled(step).to(dtype))
  elif step["operation"] == "load":
   load(built[step["instance"]], {name: as_value(value) for name, value in step["values"].items()})
  else:
   own = called(step, names, built)
   if step["operation"] == "cost":
    own = partial(_cost, own, with_held(own, step.get("with", ()), built), "once" in step)
   else:
    own = with_held(walking_once(own, "once" in step), step.get("with", ()), built)
   yield step, own, args

def _observed(function, args, named):
 held = copied(args)
 unused = copy.deepcopy(function)
 exact, sums = _described(function(*args, **named))
 changed = [not is_unwritten(before, after) for before, after in zip(held, args, strict=True)]
 wide = [_in(arg, torch.float64) for arg in copied(held)]
 wider = _attempt(lambda: _described(_widened(unused)(*wide, **named))[0])
 gradients = _attempt(lambda: _gradient_sums(function, held, named))
 flows, flow_sums = gradients if isinstance(gradients, tuple) else (gradients, [])
 return [_checksum(repr((exact, changed, wider, flows))), *sums, *flow_sums]

def _once(function, args, named):
 held = copied(args)
 exact, sums = _described(function(*args, **named))
 changed = [not is_unwritten(before, after) for before, after in zip(held, args, strict=True)]
 return [_checksum(repr((exact, changed))), *sums]

def _cost(own, ready, once, *args, **named):
 return of_call(ready, Arguments(args, named), own, is_cell, once=once).cost

def _spent(function, args, step):
 passed = exceeded(function(*args, **step.get("named", {})), step["limits"])
 return [_checksum(repr(passed)), float(len(passed))]

def _hunted(names, given, hunt):
 return [_checksum(looked_at(given, hunt, names).why), 1.0]

def _gradient_sums(
 function, args, named
):
 args = [arg.clone().requires_grad_() if _is_float(arg) else arg for arg in args]
 parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
 leaves = [leaf for leaf in [*args, *parameters] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
 result = function(*args, **named)
 outputs = [one for one in (result if isinstance(result, tuple | list) else [result]) if _is_float(one)]
 reached = [_weighed(one.double()).sum() for one in outputs if one.requires_grad]
 found = torch.autograd.grad(reached, leaves, allow_unused=True) if reached else [None] * len(leaves)
 sums = [number for gradient in found if gradient is not None for number in _described(gradient)[1]]
 return [gradient is not None for gradient in found], sums

def _described(value):
 if isinstance(value, tuple | list):
  parts = [_described(item) for item in value]
  return (type(value).__name__, [exact for exact, _ in parts]), [number for _, sums in parts for number in sums]
 if isinstance(value, dict):
  return sorted(map(repr, value.items())), []
 if isinstance(value, int | float):
  return (type(value).__name__, []), _described(torch.tensor(float(value)))[1]
 if not isinstance(value, torch.Tensor):
  return type(value).__name__, []
 flat = value.detach().flatten().double()
 broken = [int(flat.isnan().sum()), int((flat == torch.inf).sum()), int((flat == -torch.inf).sum())]
 flat = flat.nan_to_num(0.0, 0.0, 0.0)
 flat = flat.sign() * flat.abs().log1p()
 return (list(value.shape), str(value.dtype), broken), [float(flat.abs().sum()), float(_weighed(flat).sum())]

def _weighed(values):
 places = torch.arange(1, values.numel() + 1, dtype=torch.float64).reshape(values.shape)
 return values * torch.cos(places * 2.399963)

def _checksum(exact):
 return zlib.crc32(exact.encode())

def _attempt(do):
 try:
  return do()
 except Exception as error:
  return type(error).__name__

def _widened(function):
 return function.double() if isinstance(function, torch.nn.Module) else function

def _in(value, dtype):
 return each(value, lambda one: one.to(dtype) if _is_float(one) else one) if dtype is not None else value

def _is_float(value):
 return isinstance(value, torch.Tensor) and value.is_floating_point()
_SIGMAS = 6

def weights_dropped(call):
 rule = call.step["dropped"]
 if not isinstance(call.value, torch.Tensor) or not isinstance(call.whole, torch.Tensor):
  raise Wrong(f"The result is {with_article(type(call.value).__name__)}; a tensor is expected.")
 right = rule.get("evaluation", {})
 expected = tuple(right.get("shape", call.whole.shape))
 if call.value.shape != expected:
  raise Wrong(f"The result has shape {tuple(call.value.shape)}; {expected} is expected.")
 if call.whole.shape != expected:
  raise Wrong(WRONG_ALREADY)
 if call.value.is_complex():
  raise Wrong("The result is complex; real numbers are expected.")
 p, shape, names = rule["p"], [size for _, size in rule["view"]], [name for name, _ in rule["view"]]
 result, whole = (one.detach().double().reshape(shape) for one in (call.value, call.whole))
 if not bool(result.isfinite().all() & whole.isfinite().all()):
  raise Wrong(NOT_FINITE)
 if right and not all(map(near, sums(call.whole), right["sums"])):
  raise Wrong(WRONG_ALREADY)
 seen, gone = whole != 0, result == 0
 if bool((~seen & ~gone).any()):
  raise Wrong("In training the result is not 0 in places where it is 0 in evaluation.")
 if "copy" in names:
  copies = names.index("copy")
  if not torch.equal(gone, gone.roll(1, copies)):
   raise Wrong(NOT_THE_WEIGHTS)
 share = float(gone[seen].double().mean())
 if share in (0.0, 1.0):
  raise Wrong(ALL_DROPPED if share else NONE_DROPPED)
 for dim, name in enumerate(names):
  both = seen & seen.roll(1, dim)
  if name != "copy" and bool(both.any()) and bool((gone == gone.roll(1, dim))[both].all()) and shape[dim] > 1:
   raise Wrong(f"Every {name} has the same places dropped; each weight is dropped on its own.")
 entries = int(seen.sum()) / (2 if "copy" in names else 1)
 if _far(share, p, entries):
  if not _far(share, 1 - p, entries):
   raise Wrong(TURNED_ROUND)
  raise Wrong(ANOTHER_SHARE)
 kept = seen & ~gone
 if not torch.allclose(result[kept], whole[kept] / (1 - p), rtol=1e-4, atol=0):
  if torch.allclose(result[kept], whole[kept], rtol=1e-4, atol=0):
   raise Wrong(NOT_RESCALED)
  raise Wrong(CHANGED)
 if rule.get("freely"):
  _freely(gone, names)
 if call.gradients and not _flows(call):
  raise Wrong("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")

def _far(share, wanted, entries):
 return bool(abs(share - wanted) > _SIGMAS * (wanted * (1 - wanted) / entries) ** 0.5)

def _freely(gone, names):
 counts = gone.sum(-1)
 if not bool(gone.diagonal(dim1=-2, dim2=-1).any()):
  raise Wrong("The diagonal is never dropped; each weight is dropped on its own.")
 if bool((counts == counts.flatten()[0]).all()):
  raise Wrong("Every row loses the same number of weights; each weight is dropped on its own.")
 if gone.shape[-1] == gone.shape[-2] and torch.equal(gone, gone.mT):
  raise Wrong("What is dropped is the same on both sides of the diagonal; each weight is dropped on its own.")
 share = float(gone.double().mean())
 for dim, name in enumerate(names):
  half = gone.shape[dim] // 2
  for one, other in (
   (range(0, 2 * half, 2), range(1, 2 * half, 2)),
   (range(half), range(half, 2 * half)),
   (range(half), range(gone.shape[dim] - 1, gone.shape[dim] - 1 - half, -1)),
  ):
   both = gone.index_select(dim, torch.tensor(one)) & gone.index_select(dim, torch.tensor(other))
   if _far(float(both.double().mean()), share**2, both.numel()):
    raise Wrong(f"One {name} tells what is dropped at another; each weight is dropped on its own.")

def not_counted_out(calls):
 fallen = {int((call.value == 0).sum()) for call in calls}
 if len(fallen) == 1:
  raise Wrong(always_as_many(len(calls)))

def _flows(call):
 gradient, weights = call.gradients[0], call.args[0]
 if gradient is None:
  raise Wrong(DETACHED)
 return bool(torch.allclose(gradient.double() * weights.double(), call.value.detach().double(), rtol=1e-4))
_USUAL = 1e-4
_FAR = 1e6

def judged(names, example, trial = None):
 looks_at = set(example.get("looks_at", ["value"]))
 trial = trial or Trial(names)
 calls = []
 parameters = []
 odd = None
 seed_in_use(0)
 for step in example["steps"]:
  found = _taken(trial, step)
  if isinstance(found, Call):
   calls.append(found)
   for aspect, (part, judge) in _OF_A_CALL.items():
    if aspect in looks_at and (part in step or not part):
     try:
      judge(found)
     except Wrong as wrong:
      if not wrong.odd_shape:
       raise
      odd = odd or (wrong, trial.now)
  elif step["operation"] == "parameters":
   parameters.append(found)
   if "parameters" in looks_at:
    _parameters(found, step["right"])
 if odd:
  odd_one, trial.now = odd
  raise odd_one
 if "other parameters" in looks_at and _all_alike(parameters):
  raise Wrong(SAME_WEIGHTS)
 if "hunt" in looks_at:
  for call in calls:
   _own_comes_first(names, call.step["hunt"])
   if problem := caught(call, names).problem:
    raise Wrong(problem)
 if "steady" in looks_at:
  _steady(calls)
 if "counted" in looks_at:
  not_counted_out([call for call in calls if call.step["dropped"].get("lone")])
 if "anew" in looks_at and _any_alike([call.value for call in calls]):
  raise Wrong("Two calls give exactly the same: nothing is dropped, or a seed is set, or a draw kept, inside.")
 return trial

def _own_comes_first(names, hunt):
 values = [one for one in hunt.get("examples", ()) if _looks_at_values(one)]
 for example in values:
  try:
   judged(names, {**example, "looks_at": ["value"]})
  except Exception as error:
   if hunt["of"] not in names or is_stub(error):
    raise Wrong(f"Write {hunt['of']} first: {COMES_FIRST}") from None
   raise Wrong(f"{hunt['of']} does not pass its check yet, so mend that first: {COMES_FIRST}") from None

def _looks_at_values(example):
 return "value" in example.get("looks_at", ["value"]) and not example.get("property")

def _taken(trial, step):
 if "refuses" not in step:
  return trial.take(step)
 try:
  trial.take(step)
 except Exception as error:
  kinds = {kind.__name__ for kind in type(error).__mro__}
  if not kinds & set(step["refuses"]) or is_stub(error):
   raise
  return None
 raise Wrong(RAISES_NOTHING)

def is_stub(error):
 return isinstance(error, NotImplementedError) and not str(error)

def _value(call):
 right, close = as_value(call.step["result"]), call.step.get("close", _USUAL)
 problem = difference_of(call.value, right, close)
 if problem:
  wrong = Wrong(problem)
  if isinstance(right, tuple | torch.Tensor) and oddly_shaped(call.value, expecting(right, close)):
   wrong = Wrong(f"{problem} Its numbers are right.")
   wrong.odd_shape = True
  raise wrong

def difference_of(actual, expected, close, what = "The result"):
 if isinstance(expected, tuple | torch.Tensor):
  return difference(actual, expecting(expected, close), _called_in_judgement, _first_place, what=what)
 if isinstance(actual, dict) and isinstance(expected, dict):
  return _entries(actual, expected)
 if type(actual) is type(expected) and actual == expected:
  return None
 return f"{what} is {str(actual)[:200]!r}; {expected!r} is expected."

def _entries(actual, expected):
 for key in expected:
  if key not in actual:
   return f"The result has no entry for {key!r}; {expected!r} is expected."
 for key, value in actual.items():
  if key not in expected:
   return f"The result has an entry for {str(key)[:60]!r}; {expected!r} is expected."
  if type(value) is not type(expected[key]) or value != expected[key]:
   return f"The result has {str(value)[:60]} for {key!r}; {expected!r} is expected."
 return None

def _first_place(actual, expected, close):
 place = tuple((~close).nonzero()[0].tolist())
 got, wanted = (_number_in_judgement(one[place].item()) for one in (actual, expected))
 for digits in (6, 8, 10, 12):
  if got == wanted:
   got, wanted = (f"{one[place].item():.{digits}g}" for one in (actual, expected))
 said = f"{got} where {wanted} is expected."
 if not place:
  return f"is {said}"
 return f"differs in {int((~close).sum())} of {close.numel()} places; the first, {list(place)}, is {said}"

def _number_in_judgement(value):
 if not abs(value) < _FAR:
  return f"{value:.5g}"
 short = f"{value:.4f}".removesuffix(".0000")
 return "0" if short == "-0" else short

def _called_in_judgement(value):
 return "None" if value is None else with_article(type(value).__name__)

def _gradients(call):
 close = call.step.get("close", _USUAL)
 right = [as_value(one) for one in call.step["gradients"]]
 named = {name: as_value(one) for name, one in call.step.get("parameter_gradients", {}).items()}
 pairs = [(argument(n), call.gradients[n], one) for n, one in enumerate(right)]
 pairs += [(f"`{name}`", call.parameter_gradients.get(name), one) for name, one in named.items()]
 for where, gradient, expected in pairs:
  if expected is None:
   continue
  if gradient is None:
   raise Wrong(detached(where))
  if problem := difference_of(gradient, expected, close, f"The gradient of {where}"):
   raise Wrong(problem)

def _fits(call):
 values = call.value if isinstance(call.value, tuple | list) else [call.value]
 if len(values) != len(call.step["cotangents"]):
  raise Wrong(of_another_shape(_called_in_judgement(call.value), call.step["cotangents"][0]["shape"]))
 for value, cotangent in zip(values, call.step["cotangents"], strict=True):
  is_tensor = isinstance(value, torch.Tensor)
  if not is_tensor or list(value.shape) != list(cotangent["shape"]):
   found = f"a tensor of shape {tuple(value.shape)}" if is_tensor else _called_in_judgement(value)
   raise Wrong(of_another_shape(found, cotangent["shape"]))

def _arrives_in_judgement(call):
 _fits(call)
 arrived = {argument(n): call.gradients[n] for n in call.step["arrives_at"]}
 arrived |= {f"`{name}`": gradient for name, gradient in call.parameter_gradients.items()}
 for where, gradient in arrived.items():
  if gradient is None:
   raise Wrong(detached(where))

def _finite(call):
 _fits(call)
 if not all(bool(value.isfinite().all()) for value in tensors_in(call.value)):
  raise Wrong(RESULT_NOT_FINITE)
 found = {argument(number): gradient for number, gradient in enumerate(call.gradients)}
 found |= {f"`{name}`": gradient for name, gradient in call.parameter_gradients.items()}
 for where, gradient in found.items():
  if gradient is not None and not bool(gradient.isfinite().all()):
   raise Wrong(not_finite(where))

def _changed(call):
 if call.changed:
  raise Wrong(writes_into(call.changed))

def _dtype(call):
 values = call.value if isinstance(call.value, tuple | list) else [call.value]
 wanted = getattr(torch, call.step["dtype"])
 for value in values:
  if not isinstance(value, torch.Tensor):
   raise Wrong(f"The result is {_called_in_judgement(value)}, not a tensor.")
  if value.dtype != wanted:
   raise Wrong(f"The result is {value.dtype}; {wanted} is expected.")

def _device(call):
 if complaint := of_devices(call.verdict):
  raise Wrong(complaint)

def _cost_in_judgement(call):
 limits = call.step["limits"]
 if call.cost is not None and (found := complaint(call.cost, limits, _at)):
  raise Wrong(found)

def _at(most):
 return f" in line {most.line} of the cell" if most.line else ""

def _parameters(found, right):
 shapes = {name: list(parameter.shape) for name, parameter in found.items()}
 if shapes != dict(right):
  raise Wrong(other_parameters(shapes))

def _all_alike(parameters):
 first, *others = parameters
 return bool(first) and all(
  one.keys() == first.keys() and all(_identical(first[name], one[name]) for name in first) for one in others
 )

def _any_alike(values):
 return any(_identical(one, other) for number, one in enumerate(values) for other in values[:number])

def _identical(one, other):
 both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
 return both and one.dtype == other.dtype and torch.equal(one, other)

def _steady(calls):
 first, *others = calls
 right = as_value(first.step["result"])
 for call in calls:
  if not isinstance(call.value, torch.Tensor):
   raise Wrong(f"The result is {_called_in_judgement(call.value)}, not a tensor.")
  if call.value.shape != right.shape:
   raise Wrong(f"The result has shape {tuple(call.value.shape)}; {tuple(right.shape)} is expected.")
 for call in others:
  stays = torch.isclose(right, as_value(call.step["result"]), rtol=1e-6, atol=1e-6)
  alike = torch.isclose(first.value.double(), call.value.double(), rtol=1e-5, atol=1e-5, equal_nan=True)
  if bool((stays & ~alike).any()):
   if bool(stays.all()):
    raise Wrong("Two calls with the same input differ: is something drawn by chance in it?")
   token = (stays & ~alike).nonzero()[0, -2].item()
   raise Wrong(changed_by_the_future(int(token)))
_OF_A_CALL = {
 "value": ("result", _value),
 "gradients": ("gradients", _gradients),
 "arrival": ("arrives_at", _arrives_in_judgement),
 "finite": ("cotangents", _finite),
 "unchanged": ("", _changed),
 "dtype": ("dtype", _dtype),
 "device": ("", _device),
 "dropped": ("dropped", weights_dropped),
 "cost": ("limits", _cost_in_judgement),
}
NOT_DEFINED, NOT_WRITTEN = "not defined yet", "not written yet"
SECONDS = 8.0
_WALL_FACTOR = 5
_SOONEST = 0.01
_LONGEST_in_tried = 200

class TimeUp(BaseException):
 """An example took too long; no `except Exception` of the student's catches it."""

@dataclass
class Tried:
 example: any
 problem: any = ""
 call: any = None
 printed: any = ""
 frames: any = field(default_factory=list)
 odd_shape: any = False
 skipped: any = False
 @property
 def share(self):
  return 0.5 if self.odd_shape else 0.0 if self.problem or self.skipped else 1.0

@dataclass
class Outcome:
 exercise: any
 points: any
 missing: any = ""
 tried: any = field(default_factory=list)
 not_tried: any = field(default_factory=list)
 calls: any = field(default_factory=list)
 mistakes: any = field(default_factory=list)
 whereabouts: any = ""
 @property
 def failed(self):
  return [one for one in self.tried if one.problem or one.skipped]
 @property
 def whole(self):
  return not (self.missing or self.failed or self.calls)
 @property
 def hardly_tried(self):
  return bool(self.not_tried) and all(one.example.get("property") for one in self.tried)
 @property
 def score(self):
  if self.missing or self.calls:
   return 0.0
  return self.points and round(self.points * (0.5 if self.halved else self._share), 2)
 @property
 def halved(self):
  return self._share > 0.5 and any(one.example.get("essential") for one in self.failed)
 @property
 def _share(self):
  hidden = [one for one in self.tried if not one.example.get("property") and not one.example.get("public", True)]
  shown = not hidden or any(one.share for one in hidden)
  weights = [one.example.get("weight", 1.0) for one in self.tried]
  earned = sum(
   one.share * weight
   for one, weight in zip(self.tried, weights, strict=True)
   if shown or not one.example.get("property")
  )
  return float(earned / sum(weights))
 @property
 def goes_wrong(self):
  return bool(self.to_look_at) and any(one.problem and not one.example.get("property") for one in self.tried)
 @property
 def to_look_at(self):
  late = any(one.skipped or one.problem == _TOO_LONG for one in self.tried)
  return [] if self.missing or self.calls or late else [one.problem for one in self.tried if one.problem]

def outcome(names, exercise, of, mistakes):
 found = Outcome(exercise, float(of["points"]), not_tried=list(of.get("not_tried", ())))
 if exercise not in names:
  found.missing = NOT_DEFINED
  return found
 libraries, forbids = set(), set(of.get("forbids", ()))
 with warnings.catch_warnings(), libraries_watched(libraries) if forbids else contextlib.nullcontext():
  warnings.simplefilter("ignore")
  late = False
  for example in of["examples"]:
   one = Tried(example, skipped=True) if late else _tried(names, example)
   found.tried.append(one)
   if one.problem == NOT_WRITTEN:
    found.missing = NOT_WRITTEN
    return found
   late = late or one.problem == _TOO_LONG
 found.calls = sorted(libraries & forbids)
 if mistakes and not late and not found.calls and not any(COMES_FIRST in one.problem for one in found.tried):
  with limited():
   passed = [not one.problem for one in found.tried]
   found.mistakes = mistakes_alike(names, of["examples"], passed, mistakes)
 return found
_TOO_LONG = f"It did not come back within {SECONDS:g} seconds. Does a loop in it never end?"

def _tried(names, example):
 trial, one = Trial(names), Tried(example)
 try:
  with limited():
   judged(names, example, trial)
 except KeyboardInterrupt:
  raise
 except Wrong as wrong:
  one.problem, one.odd_shape = str(wrong), wrong.odd_shape
 except TimeUp:
  one.problem = _TOO_LONG
 except BaseException as error:
  one.problem = NOT_WRITTEN if is_stub(error) else _said(error)
  one.frames = _frames(error)
 one.call, one.printed = trial.now, trial.printed.getvalue()
 return one

def _said(error):
 try:
  first_line = str(error).strip().partition("\n")[0].removesuffix("Hint:").strip()
 except Exception:
  first_line = ""
 said = f"It raised {type(error).__name__}: {first_line[:_LONGEST_in_tried]}"
 means = meant(first_line)
 return f"{said.rstrip('.')}. {means}" if means else said

def _frames(error):
 found = traceback.extract_tb(error.__traceback__)
 return [(one.name, one.lineno or 0, (one.line or "").strip()) for one in found if is_cell(one.filename)][-3:]

@contextlib.contextmanager
def limited(seconds = None):
 possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
 if not possible:
  yield
  return
 most = seconds or SECONDS
 cpu, clock = time.thread_time(), time.monotonic()
 def ring(number, frame):
  left = min(most - (time.thread_time() - cpu), most * _WALL_FACTOR - (time.monotonic() - clock))
  if left <= 0:
   raise TimeUp
  signal.setitimer(signal.ITIMER_REAL, max(left, _SOONEST))
 before = signal.signal(signal.SIGALRM, ring)
 signal.setitimer(signal.ITIMER_REAL, most)
 try:
  yield
 finally:
  signal.setitimer(signal.ITIMER_REAL, 0)
  signal.signal(signal.SIGALRM, before)

@contextlib.contextmanager
def as_in_a_new_notebook():
 state, dtype = torch.get_rng_state(), torch.get_default_dtype()
 torch.set_default_dtype(torch.float32)
 try:
  with torch.inference_mode(mode=False), torch.enable_grad():
   yield
 finally:
  torch.set_default_dtype(dtype)
  torch.set_rng_state(state)
SECONDS_TO_LOOK = 5.0

def line_told(
 names, exercise, steps, problems = (), *, is_wrong = True
):
 quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
 try:
  with quiet[0], quiet[1], warnings.catch_warnings(), limited(SECONDS_TO_LOOK):
   warnings.simplefilter("ignore")
   known = known_right(steps, steps.stat().st_mtime_ns, exercise)
   found = _told(names[exercise], [right for _, right in known if right]) if is_wrong else ""
   return found or _told_of_aspects(names[exercise], [case for case, _ in known], problems)
 except KeyboardInterrupt:
  raise
 except BaseException:
  return ""

@cache
def known_right(steps, _changed, exercise):
 of = read_data(steps).get(exercise, {"cases": []})
 cases = [(_case(exercise, one), one) for one in of["cases"]]
 return [(case, None if case.is_silent else read_reference(one, of["operators"], case)) for case, one in cases]

def _told(answer, known):
 file = file_of(answer)
 if not linecache.getlines(file):
  return ""
 for right in known:
  looking = _Looking(answer, file, right)
  if right.is_right(looking.first):
   continue
  located = locate(right, looking.again)
  return told(located, right.case, linecache.getlines) if located and looking.is_own(located) else ""
 return ""

def _told_of_aspects(answer, cases, problems):
 file = file_of(answer)
 for aspect, details in filter(None, map(aspect_of, problems)):
  for case in cases:
   torch.default_generator.manual_seed(0)
   asked = Asked(answer, case.arguments, case.built, case.parameters, case.through)
   lost = None
   with contextlib.suppress(Exception):
    lost = where_lost(aspect, details, asked, lambda name: name == file or is_cell(name))
   line = linecache.getline(file, lost.line) if lost and lost.file == file else ""
   if lost and line.strip():
    return told_of_aspect(aspect, details, lost, case, line)
 return ""

def _case(exercise, written):
 arguments = tuple(as_value(arg) for arg in written["args"])
 parameters = {name: as_value(one) for name, one in written.get("parameters", {}).items()}
 built = tuple(written["built"]) if "built" in written else None
 untold = frozenset(written.get("untold", ()))
 through = tuple(written.get("through", ()))
 is_silent = "silent" in written
 return TellingCase(exercise, arguments, built, parameters, through=through, is_silent=is_silent, untold=untold)

class _Looking:
 def __init__(self, answer, file, right):
  self._answer = answer
  self._file = file
  self._case = right.case
  self.first = self._run({})
 def again(self, replaced):
  return self._run(replaced) if replaced else self.first
 def is_own(self, located):
  lines = {one.line for one in self.first.made if one.file == self._file}
  lines |= {self.first.returned[1]} if self.first.returned else set()
  texts = [linecache.getline(self._file, line) for line in located.lines]
  return located.file == self._file and lines.issuperset(located.lines) and all(map(str.strip, texts))
 def _run(self, replaced):
  torch.default_generator.manual_seed(0)
  case = self._case
  call = made_ready(self._answer, case.built, case.parameters, case.arguments, case.through)
  return watched(call, Watch(lambda file: file == self._file or is_cell(file), replaced, in_shape=True))
EXAMPLES, MISTAKES, STEPS = "public_examples.json.gz", "known_mistakes.json.gz", "right_steps.json.gz"
LESSON = "guesses_and_hints.json.gz"
WRITTEN = "written questions"
_WIDEST = 8.2
_WHITE_FROM = 0.7

def show(*makers):
 for make in makers:
  made, why_not = _made(make)
  if why_not:
   print(why_not)
  elif made is not None:
   print(*_apart(made), sep="\n")

def draw(pictures, names):
 from matplotlib import pyplot
 side = min(4.1, _WIDEST / len(pictures))
 size = side * len(pictures), min(4.1, side + 0.7)
 _, axes = pyplot.subplots(1, len(pictures), figsize=size, layout="constrained", squeeze=False)
 for ax, (title, make) in zip(axes[0], pictures.items(), strict=True):
  ax.set_title(title, fontsize=10)
  _draw_one(ax, make, len(names))
  ax.set_xticks(range(len(names)), names, rotation=45)
  ax.set_yticks(range(len(names)), names if ax is axes[0][0] else [""] * len(names))
  ax.set_xlabel("key")
 axes[0][0].set_ylabel("query")
 pyplot.show()

def _made(make):
 try:
  made = make()
 except NotImplementedError:
  return None, "not written yet"
 except Exception as error:
  return None, f"{type(error).__name__}: {error}"
 return made, ""

def _apart(made):
 several = isinstance(made, tuple | list) and bool(made) and all(isinstance(one, torch.Tensor) for one in made)
 return [one.detach() if isinstance(one, torch.Tensor) else one for one in (made if several else [made])]

def _draw_one(ax, make, size):
 made, why_not = _made(make)
 matrix = None
 if not why_not:
  try:
   matrix = made.detach().double().cpu().reshape(size, size)
  except Exception:
   why_not = f"no matrix of {size} by {size}"
 if matrix is None:
  ax.text((size - 1) / 2, (size - 1) / 2, why_not.partition("\n")[0][:60], ha="center", va="center", wrap=True)
  ax.set_xlim(-0.5, size - 0.5)
  ax.set_ylim(size - 0.5, -0.5)
  ax.set_aspect("equal")
  return
 finite = matrix.nan_to_num(posinf=0.0, neginf=0.0)
 low, top = min(0.0, finite.min().item()), max(finite.max().item(), 1e-9)
 ax.imshow(finite.numpy(), cmap="Blues", vmin=low, vmax=top)
 digits = ".0f" if torch.equal(finite, finite.round()) else ".2f" if max(top, -low) < 100 else ".4g"
 for query, row in enumerate(matrix.tolist()):
  for key, number in enumerate(row):
   colour = "white" if number - low > _WHITE_FROM * (top - low) else "black"
   text = f"{number:{digits}}" if number else "0"
   ax.text(key, query, text, ha="center", va="center", fontsize=8, color=colour)
_MOST_in_matrices = 8
_LARGE = 1e4
_MORE_DIGITS = (".6f", ".8g", ".10g", ".12g")

@dataclass
class Beside:
 where: any
 own: any
 right: any
 wrong: any
 cut: any

def beside(call):
 if call is None or "result" not in call.step:
  return None
 pairs = [(call.value, as_value(call.step["result"]))]
 if isinstance(pairs[0][1], tuple) and isinstance(call.value, tuple | list):
  pairs = list(zip(call.value, pairs[0][1], strict=False))
 for own, right in pairs:
  both = isinstance(own, torch.Tensor) and isinstance(right, torch.Tensor)
  if not both or own.shape != right.shape or not own.dim() or not own.numel() or own.is_complex():
   continue
  found = _first(own.detach().double(), right.double(), call.step.get("close", 1e-4))
  if found:
   return found
 return None

def _first(own, right, tolerance):
 wrong = ~close(own, right, tolerance)
 if not bool(wrong.any()):
  return None
 leading = tuple(wrong.nonzero()[0].tolist())[:-2] if own.dim() > 2 else ()
 own, right, wrong = ((one[leading] if leading else one).reshape(-1, one.shape[-1]) for one in (own, right, wrong))
 row, column = (max(0, int(place) - _MOST_in_matrices + 1) for place in wrong.nonzero()[0])
 part = slice(row, row + _MOST_in_matrices), slice(column, column + _MOST_in_matrices)
 cut = own.shape[0] > _MOST_in_matrices or own.shape[1] > _MOST_in_matrices
 where = [f"[{', '.join(map(str, leading))}]"] if leading else []
 if cut:
  where.append(f"from row {row} and column {column} on")
 own, right, wrong = own[part], right[part], wrong[part]
 own_shown, right_shown = _apart_in_matrices(own, right, wrong)
 return Beside(", ".join(where), own_shown, right_shown, wrong.tolist(), cut)

def _apart_in_matrices(own, right, wrong):
 shown = [_numbers_in_matrices(one, _digits(one)) for one in (own, right)]
 for digits in _MORE_DIGITS:
  if all(
   not differs or one != other
   for rows in zip(*shown, wrong.tolist(), strict=True)
   for one, other, differs in zip(*rows, strict=True)
  ):
   break
  shown = [_numbers_in_matrices(one, digits) for one in (own, right)]
 return shown

def _numbers_in_matrices(matrix, digits):
 return [[f"{number:{digits}}" for number in row] for row in matrix.tolist()]

def _digits(matrix):
 finite = matrix[matrix.isfinite()]
 whole = bool((finite == finite.round()).all())
 return ".4g" if bool((finite.abs() >= _LARGE).any()) else ".0f" if whole else ".4f"
_STYLE = """<style>
.acheck{max-width:60em;line-height:1.45;overflow-wrap:anywhere;font-size:.95em}
.acheck .t{font-weight:600;margin:.2em 0 .5em}
.acheck.acheck ul{list-style:none;margin:0;padding:0}
.acheck.acheck p{margin:.4em 0}
.acheck li{margin:.25em 0;padding-left:6.2em;text-indent:-6.2em}
.acheck li>*{text-indent:0}
.acheck .m{display:inline-block;width:5.7em;margin-right:.5em;font-weight:600;text-indent:0}
.acheck .ok .m{color:#1a7f37}.acheck .no .m{color:#cf222e}
.acheck .p{border-left:3px solid #cf222e;padding-left:.6em;margin:.15em 0}
.acheck .b{border:2px solid #bf8700;border-radius:4px;background:rgba(191,135,0,.12);padding:.4em .7em;margin:.6em 0}
.acheck .w{border:2px dashed #bf8700;border-radius:4px;padding:.4em .7em;margin:.3em 0}
.acheck.acheck pre,.acheck code{white-space:pre-wrap;overflow-wrap:anywhere;color:inherit}
.acheck.acheck pre,.acheck code{background:rgba(127,127,127,.12)}
.acheck.acheck pre{margin:.15em 0;padding:.3em .6em;max-height:12em;overflow:auto;word-break:normal}
.acheck.acheck pre.b{max-height:none;margin:.6em 0;padding:.4em .7em;border:2px solid #bf8700}
.acheck.acheck pre.b{background:rgba(191,135,0,.12);font-family:var(--jp-code-font-family,monospace)}
.acheck .two{display:flex;flex-wrap:wrap;gap:.4em 1.6em;margin:.3em 0}
.acheck .two>div{max-width:100%;overflow-x:auto}
.acheck .two table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em;color:inherit}
.acheck .two td{padding:.1em .5em;text-align:right;border:1px solid rgba(127,127,127,.35);background:none;color:inherit}
.acheck .two td.x{background:rgba(207,34,46,.2);font-weight:700;text-decoration:underline}
.acheck .s td,.acheck .s th{text-align:left;padding:.15em .8em .15em 0}
.acheck .s{border-collapse:collapse;color:inherit}
@media (prefers-color-scheme:dark){.acheck .ok .m{color:#3fb950}.acheck .no .m{color:#ff7b72}}
[data-jp-theme-light="true"] .acheck .ok .m{color:#1a7f37}[data-jp-theme-light="true"] .acheck .no .m{color:#cf222e}
[data-jp-theme-light="false"] .acheck .ok .m{color:#3fb950}[data-jp-theme-light="false"] .acheck .no .m{color:#ff7b72}
</style>"""
_MARKS = {"passed": ("ok", "✓ passed"), "FAILED": ("no", "✗ failed"), "not tried": ("", "– not tried")}

def as_page(said):
 parts = [f'<p class="w">{escape(said.warning)}</p>'] if said.warning else []
 parts.append(f'<p class="t">{escape(said.title)}</p>')
 if said.box:
  sentences = "".join(f"<div>{_prose(sentence)}</div>" for sentence in said.box)
  parts.append(f'<div class="b"><b>{escape(said.box_title)}</b>{sentences}</div>')
 if said.whereabouts:
  parts.append(f'<pre class="b">{escape(said.whereabouts)}</pre>')
 if said.lines:
  parts.append(f"<ul>{''.join(map(_item, said.lines))}</ul>")
 parts += [f"<p>{_prose(one)}</p>" for one in [*said.asides, said.sum.rstrip(":") + "." if said.sum else ""] if one]
 return f'{_STYLE}<div class="acheck">{"".join(parts)}</div>'

def page_of_summary(rows, below):
 lines = "".join(f"<tr><th scope='row'><code>{escape(name)}</code></th><td>{escape(_mark(said) + said)}</td>"
                    f"<td>{escape(score)}</td></tr>" for name, said, score in rows)
 text = "".join(f"<p>{escape(one)}</p>" for one in below)
 return f'{_STYLE}<div class="acheck"><table class="s">{lines}</table>{text}</div>'

def page_of_lines(title, lines):
 parts = [f'<p class="t">{_prose(title)}</p>'] if title else []
 return f'{_STYLE}<div class="acheck">{"".join([*parts, *(f"<p>{_prose(line)}</p>" for line in lines)])}</div>'

def _mark(said):
 if said == "passes":
  return "✓ "
 return "– " if said.startswith("not ") else "✗ "

def _item(line):
 kind, mark = _MARKS[line.mark]
 inside = f'<span class="m">{mark}</span> {_prose(line.statement)}'
 if line.problem:
  below = _prose(line.problem)
  below += f"<div>In the call <code>{escape(line.call)}</code></div>" if line.call else ""
  below += f"<div>To play with it: <code>{escape(line.to_play_with)}</code></div>" if line.to_play_with else ""
  below += "".join(f"<div><code>{escape(frame)}</code></div>" for frame in line.frames)
  inside += f'<div class="p">{below}</div>'
 if line.beside:
  inside += _two(line.beside)
 if line.printed:
  inside += f"<div>Your code printed:</div><pre>{escape(line.printed)}</pre>"
 return f'<li class="{kind}">{inside}</li>'

def _prose(text):
 return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))

def _two(beside):
 where = f" {escape(beside.where)}" if beside.where else ""
 own = [[_cell(*one) for one in zip(*row, strict=True)] for row in zip(beside.own, beside.wrong, strict=True)]
 right = [[_cell(number) for number in row] for row in beside.right]
 return f'<div class="two">{_table(f"yours{where}", own)}{_table(f"expected{where}", right)}</div>'

def _table(title, cells):
 rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
 return f"<div>{title}<table>{rows}</table></div>"

def _cell(number, wrong = False):
 return f'<td class="x">{escape(number)} ≠</td>' if wrong else f"<td>{escape(number)}</td>"
_WHAT_TO_DO = {
 NOT_DEFINED: "run its cell first",
 NOT_WRITTEN: "its stub still raises NotImplementedError",
}
_BY_A_PERSON = "not marked yet: a person reads it"
_MOST_PRINTED = 600
_AS_ABOVE = "As above."
MOST_SHOWN = 3

@dataclass
class Line:
 mark: any
 statement: any
 problem: any = ""
 call: any = ""
 to_play_with: any = ""
 printed: any = ""
 frames: any = field(default_factory=list)
 beside: any = None

@dataclass
class Account:
 title: any
 warning: any
 lines: any
 box_title: any
 box: any
 whereabouts: any
 asides: any
 sum: any

def account(found, warning):
 if found.missing:
  title = f"{found.exercise} is {found.missing}: {_WHAT_TO_DO[found.missing]}."
  return Account(title, warning, [], "", [], "", [], "")
 passes, sum_of = "passes on the public examples", "On the public examples"
 if found.hardly_tried:
  passes, sum_of = "passes the little that can be tried here", "Without what is not tried here"
 title = f"{found.exercise} {passes}." if found.whole else f"{found.exercise} is not right yet."
 first = {_kind_in_showing(one): number for number, one in reversed(list(enumerate(found.tried))) if one.problem}
 more = sorted(first.values())[:MOST_SHOWN]
 lines = [_line(found.exercise, number, one, with_more=number in more) for number, one in enumerate(found.tried)]
 for number, (line, one) in enumerate(zip(lines, found.tried, strict=True)):
  if line.problem and first[_kind_in_showing(one)] != number:
   line.problem = _AS_ABOVE
  if line.problem and found.halved and one.example.get("essential"):
   line.problem = halves_the_points(line.problem)
 box_title, box = "", list(found.mistakes)
 if box:
  if found.whole:
   box_title = f"But so does {'a common mistake' if len(box) == 1 else 'each of these common mistakes'}:"
  elif len(box) == 1:
   box_title = "A common mistake looks just like this:"
  else:
   box_title = "Several common mistakes look like this; yours may be one of them:"
 asides = [f"Not tried here: {statement}" for statement in found.not_tried]
 if found.calls:
  asides.insert(0, calls_forbidden(found.calls))
 if any(line.to_play_with for line in lines):
  asides.append(f"`example` comes with `from {__name__} import example`.")
 asides.append(_of_hidden_tests(found))
 return Account(
  title, warning, lines, box_title, box, found.whereabouts, asides,
  f"{sum_of} that is {found.score:g} of {found.points:g} points:",
 )

def _kind_in_showing(one):
 return re.sub(r"\d+", "", one.problem) if one.frames else one.problem

def _of_hidden_tests(found):
 if hunted := [prey["of"] for one in found.tried for prey in hunts({"examples": [one.example]})]:
  return f"The hidden test asks the same, with the right `{hunted[0]}` in the place of yours."
 return "The hidden tests ask the same with other numbers."

def _line(exercise, number, one, *, with_more):
 mark = "not tried" if one.skipped else "FAILED" if one.problem else "passed"
 line = Line(mark, one.example["statement"], one.problem)
 if not with_more:
  return line
 if one.call is not None:
  line.call = in_words(one.call, one.example)
  line.to_play_with = to_play_with(one.call, exercise, number + 1, one.example)
  line.beside = beside(one.call) if "value" in one.example.get("looks_at", ["value"]) and not one.frames else None
 line.frames = [f"line {at} of the cell, in {name}: {text}" for name, at, text in one.frames]
 printed = one.printed.strip()
 line.printed = printed if len(printed) <= _MOST_PRINTED else f"{printed[:_MOST_PRINTED]}…"
 return line

def as_text(said):
 text = [said.warning] if said.warning else []
 if not said.lines:
  return "\n".join([*text, said.title])
 for line in said.lines:
  text.append(f"{line.mark}  {line.statement}")
  below = [line.problem] if line.problem else []
  below += [f"In the call {line.call}"] if line.call else []
  below += [f"To play with it: {line.to_play_with}"] if line.to_play_with else []
  below += line.frames
  below += ["Your code printed:", *line.printed.splitlines()] if line.printed else []
  text += [f"        {one}" for one in below]
 text.append(said.title)
 if said.box:
  text += [said.box_title, *(f"        {sentence}" for sentence in said.box)]
 if said.whereabouts:
  text += [said.whereabouts]
 return "\n".join([*text, *said.asides, said.sum])

class Shown(float):
 page: any
 def _repr_html_(self):
  return self.page

def tell(found, warning):
 said = account(found, warning)
 if not in_jupyter():
  print(as_text(said))
  return found.score
 shown = Shown(found.score)
 shown.page = as_page(said)
 return shown

def in_jupyter():
 ipython = sys.modules.get("IPython")
 shell = ipython.get_ipython() if ipython else None
 return type(shell).__name__ == "ZMQInteractiveShell"

def say(title, lines):
 text = (" " if title.endswith(".") else "\n").join(filter(None, [title, *lines]))
 if not in_jupyter():
  print(text)
  return
 from IPython.display import display
 display({"text/html": page_of_lines(title, lines), "text/plain": text}, raw=True)

def summed(outcomes, written):
 rows = [_row(found) for found in outcomes]
 rows += [(question, _BY_A_PERSON, f"– of {points:g}") for question, points in written.items()]
 total, by_hand = sum(found.score for found in outcomes), sum(written.values())
 points = sum(found.points for found in outcomes) + by_hand
 whole = sum(found.whole for found in outcomes)
 below = [f"{whole} of {len(outcomes)} exercises pass: {total:g} of {points:g} points on the public examples."]
 if written:
  below.append(f"{by_hand:g} of these points are not given here: a person reads what you write in words.")
 below.append("The hidden tests ask the same with other numbers.")
 if in_jupyter():
  from IPython.display import HTML, display
  display(HTML(page_of_summary(rows, below)))
  return
 for name, said, score in rows:
  print(f"{name:<32}{said:<44}{score:>10}")
 print("\n".join(below))

def _row(found):
 right = len(found.tried) - len(found.failed)
 passes = "passes the little that is tried" if found.hardly_tried else "passes"
 said = found.missing or (passes if found.whole else f"{right} of {len(found.tried)} examples pass")
 if found.calls:
  said = f"calls {' and '.join(found.calls)}"
 elif found.mistakes:
  said += ", but so does a mistake" if found.whole else ", a common mistake"
 return found.exercise, said, f"{found.score:g} of {found.points:g}"
