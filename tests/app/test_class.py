"""One server for a class: everybody has a turn, names are signed, the teacher has a page, nothing tells a path."""

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from app_views import bold
from servers import PATIENCE, Server, folder, serving, short
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.testing.v1 import AppTest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from app import page, promises
from app import supervisor as supervisors
from app.cookies import COOKIE, is_teacher_token, secret_of, teacher_token
from app.dispatcher import Dispatcher
from app.limits import CLASS, Limits, Viewer, limits, secret
from app.queueing import Queue, Task
from app.sentences import shown, without_paths
from app.supervisor import Supervisor
from ftp.lab import worlds
from ftp.lab.jobs import Order
from ftp.lab.record import LabError
from ftp.lab.run import identify
from ftp.lab.store import Store

HONEST = [Viewer(f"student {number}", f"10.0.0.{number}") for number in range(10)]
GREEDY = Viewer("greedy", "10.0.1.1")
SECONDS = 20.0  # that a run takes on the clock of these tests
TEACHER = "from app.page import show; show('teacher')"


@pytest.fixture
def in_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    monkeypatch.setattr(Dispatcher, "wake", lambda self: None)  # no worker: what is decided before one comes in


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def begin(queue: Queue) -> list[Task]:
    """Give what may begin a worker, as the dispatcher does."""
    begun = []
    while (task := queue.next_task()) is not None:
        task.worker, task.began = object(), queue.clock()  # type: ignore[assignment]
        begun.append(task)
    return begun


def play(supervisor: Supervisor, clock: Clock, each_round: Callable[[], None]) -> list[Viewer]:
    """Let runs begin and end until none is left; who began, in that order."""
    order: list[Viewer] = []
    while supervisor.queue.tasks:
        clock.now += SECONDS
        for task in supervisor.queue.tasks:
            if task.worker:
                supervisor.store.finish(task.run_id, "stopped")
                supervisor.queue.remove(task)
        each_round()
        order += [next(iter(task.viewers)) for task in begin(supervisor.queue)]
    return order


@pytest.mark.parametrize("slots", [1, 3])
def test_one_greedy_and_ten_honest(in_class: None, tmp_path: Path, slots: int) -> None:
    """Greedy is first, has all it may have, and asks again at once; every honest one starts within its turn."""
    clock, seeds = Clock(), iter(range(10_000))
    supervisor = Supervisor(Store(tmp_path / "runs.db"), slots=slots, limits=CLASS, clock=clock)

    def take_all() -> None:
        with suppress(LabError):
            while clock.now < 12 * SECONDS:
                supervisor.submit(short(seed=next(seeds)), GREEDY)

    take_all()
    assert len(begin(supervisor.queue)) == slots
    for number, honest in enumerate(HONEST):
        clock.now += 0.1
        for again in range(2):
            supervisor.submit(short(seed=20_000 + 10 * number + again), honest)
    places = [supervisor.place(identify(short(seed=20_000 + 10 * number))) for number in range(len(HONEST))]
    order = play(supervisor, clock, take_all)
    assert order[:21] == [*HONEST, GREEDY, *HONEST]
    assert [place.ahead for place in places if place] == [slots + number for number in range(len(HONEST))]


def test_a_new_name_does_not_come_before_those_who_wait(tmp_path: Path) -> None:
    """Anybody can get a signed cookie for each run; then all of these names wait behind who asked before."""
    clock = Clock()
    queue = Queue(1, CLASS, clock)
    queue.add(Order("run", "a" * 16), {Viewer("honest")}, 1.0)
    begin(queue)
    queue.add(Order("run", "b" * 16), {Viewer("honest")}, 1.0)
    clock.now = 5.0
    queue.remove(queue.tasks[0])  # honest rests from here on
    clock.now = 6.0
    fresh = [queue.add(Order("run", f"{n:016x}"), {Viewer(f"fresh {n}")}, 1.0) for n in range(5)]
    assert [task.run_id for task in begin(queue)] == ["b" * 16]
    assert [queue.place(task.run_id).ahead for task in fresh] == [1, 2, 3, 4, 5]  # type: ignore[union-attr]


def test_a_run_of_several_comes_with_the_first_of_them() -> None:
    clock = Clock()
    queue = Queue(1, CLASS, clock)
    anna, ben = Viewer("anna"), Viewer("ben")
    queue.add(Order("run", "a" * 16), {anna}, 1.0)
    begin(queue)
    clock.now = 1.0
    queue.add(Order("run", "b" * 16), {anna, ben}, 1.0)
    clock.now = 2.0
    queue.add(Order("run", "c" * 16), {Viewer("cleo")}, 1.0)
    clock.now = 3.0
    queue.remove(queue.tasks[0])
    assert [task.run_id for task in begin(queue)] == ["b" * 16]  # anna has just had a run, but ben has not


def test_an_address_has_a_share_and_a_class_behind_one_address_fits(in_class: None, tmp_path: Path) -> None:
    supervisor = Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=Limits(each=3, address=4, queue=6))
    for number in range(4):
        supervisor.submit(short(seed=number), Viewer(f"name {number}", "10.0.0.1"))
    with pytest.raises(LabError) as error:
        supervisor.submit(short(seed=4), Viewer("name 4", "10.0.0.1"))
    assert str(error.value) == (
        "your network has 4 runs waiting or running, and 4 are the most here from one address; try again in a minute"
    )
    supervisor.submit(short(seed=3), Viewer("name 4", "10.0.0.1"))  # it is there already, so it costs nothing
    supervisor.submit(short(seed=4), Viewer("name 4", "10.0.0.2"))
    supervisor.change_limits(address=5)
    supervisor.submit(short(seed=5), Viewer("name 5", "10.0.0.1"))
    with pytest.raises(LabError) as error:
        supervisor.change_limits(each=0)
    assert str(error.value) == "the limit each is 0; it must be 1 or more"
    assert limits() == CLASS
    assert 50 <= CLASS.address < CLASS.queue


def test_a_race_is_one_request(in_class: None, tmp_path: Path) -> None:
    supervisor = Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=Limits(each=2, address=8, queue=8))
    race = [short(method) for method in ("ftp", "finetune", "l2_sp", "linear_probe")]
    anna = Viewer("anna")
    assert supervisor.submit_all(race, anna) == [identify(settings) for settings in race]
    supervisor.submit(short(seed=1), anna)
    with pytest.raises(LabError) as error:
        supervisor.submit(short(seed=2), anna)
    assert str(error.value) == "you have 2 runs or races waiting or running, the most here; wait for one, or stop one"
    with pytest.raises(LabError) as error:
        supervisor.submit_all([short(method, seed=7) for method in ("ftp", "finetune", "l2_sp", "bitfit")], Viewer("b"))
    assert "from one address" in str(error.value)
    assert len(supervisor.store.runs()) == 5  # all or none


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    first = secret_of(path)
    secret_of.cache_clear()
    assert secret_of(path) == first
    assert stat.S_IMODE((tmp_path / "runs-secret").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["runs-secret"]
    nowhere = Path("/proc/nowhere/runs.db")  # nothing can be written there: it lasts as long as the process
    assert len(secret_of(nowhere)) == 32
    assert secret_of(nowhere) == secret_of(nowhere) != first


def test_runs_that_nobody_watches_are_not_revived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher, "wake", lambda self: None)
    first = Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=CLASS)
    anna = Viewer("anna", "10.0.0.1")
    unseen, seen = first.submit(short(seed=1), anna), first.submit(short(seed=2), anna)
    for run in (unseen, seen):
        os.utime(promises.folder(first.store) / run, times=(0, time.time() - 1000))
    first.watch(seen)
    second = Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=CLASS)
    second.dispatcher._look_outside()
    assert [task.run_id for task in second.queue.tasks] == [seen]
    assert second.queue.tasks[0].viewers == {anna}
    assert next(iter(second.queue.tasks[0].viewers)).address == "10.0.0.1"  # the limits go on to hold
    record = second.store.load(unseen)
    assert (record.status, record.error) == ("stopped", "nobody watched for 10 minutes; press Train again to go on")
    assert not promises.has(second.store, unseen)


def test_a_promise_remembers_how_long_nobody_has_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher, "wake", lambda self: None)
    first = Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=CLASS)
    run = first.submit(short())
    os.utime(promises.folder(first.store) / run, times=(0, time.time() - 500))
    clock = Clock()
    second = Supervisor(Store(tmp_path / "runs.db"), slots=1, limits=CLASS, clock=clock)
    second.dispatcher._look_outside()
    clock.now = 90.0  # 590 s
    assert second.queue.overdue(second.queue.tasks[0]) == ""
    clock.now = 110.0
    assert second.queue.overdue(second.queue.tasks[0]).startswith("nobody watched")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the disk of {store} is full; make room", "the disk of the store of runs is full; make room"),
        ("/srv/lab/x.npz cannot be read (gone)", "a file of the server cannot be read (gone)"),
        ("see '/home/anna/a.b/c': it is closed", "see 'a file of the server': it is closed"),
        (r"C:\Users\anna\runs.db is damaged", "a file of the server is damaged"),
        ("lr is 1/2; write lr=0.5, or and/or", "lr is 1/2; write lr=0.5, or and/or"),
        ("see https://example.org/a/b/c", "see https://example.org/a/b/c"),
    ],
)
def test_a_class_is_told_no_path(monkeypatch: pytest.MonkeyPatch, own_store: Path, text: str, told: str) -> None:
    text = text.format(store=own_store)
    assert without_paths(text) == text  # at home it helps
    monkeypatch.setenv("FTP_APP_CLASS", "1")
    assert without_paths(text) == told
    assert shown(text) == told[0].upper() + told[1:]


def test_without_the_token_the_teachers_page_is_shut(in_class: None) -> None:
    for token in (None, "", "0" * 32, "x", teacher_token(b"another secret")):
        shut = AppTest.from_string(TEACHER, default_timeout=300)
        if token is not None:
            shut.query_params["token"] = token
        shut.run()
        said = "This page opens with the teacher's link alone; the terminal showed it when the server started."
        assert [error.value.replace("\\", "") for error in shut.error] == [said]
        assert not shut.button
    assert "teacher" not in page.names()
    assert not is_teacher_token("\udcff", secret())  # what a broken address can hold


def test_at_home_there_is_no_teacher() -> None:
    shut = AppTest.from_string(TEACHER, default_timeout=300)
    shut.query_params["token"] = teacher_token(secret())
    shut.run()
    assert "only a server for a class has a teacher's page" in shut.error[0].value.replace("\\", "").lower()


def opened() -> AppTest:
    teacher = AppTest.from_string(TEACHER, default_timeout=300)
    teacher.query_params["token"] = teacher_token(secret())
    teacher.run()
    assert not teacher.exception
    assert not teacher.error
    return teacher


def press(teacher: AppTest, label: str) -> AppTest:
    next(button for button in teacher.button if button.label == label).click().run()
    assert not teacher.exception
    return teacher


def test_the_teacher_clears_the_queue_stops_a_run_and_changes_limits(in_class: None) -> None:
    own = supervisors.supervisor()
    runs = [own.submit(short(seed=seed), Viewer(f"name {seed}")) for seed in range(3)]
    teacher = opened()
    assert "; waiting: 3, asked for by 3 viewers." in bold(teacher)[0]
    next(box for box in teacher.selectbox if box.label == "One of them").select_index(1).run()
    press(teacher, "Stop this one")
    assert own.store.status(runs[1]) == "stopped"
    assert own.store.load(runs[1]).error == "the teacher stopped it; press Train again to go on"
    press(teacher, "Clear the queue")
    assert [own.store.status(run) for run in runs] == ["stopped"] * 3
    assert own.queue.tasks == []
    next(number for number in teacher.number_input if number.key == "limit each").set_value(7)
    press(teacher, "Change the limits")
    assert own.limits == Limits(**{**CLASS.__dict__, "each": 7})
    assert teacher.success
    assert "wall" in page.names()
    teacher.toggle[0].set_value(False).run()
    assert not own.wall_is_on
    assert "wall" not in page.names()


def test_a_teacher_may_delete_what_a_student_may_not(in_class: None) -> None:
    own = supervisors.supervisor()
    run = own.submit(short(), Viewer("anna"))
    own.submit(short(), Viewer("ben"))
    with pytest.raises(LabError):
        own.delete(run, Viewer("anna"))
    own.delete(run, Viewer("teacher", is_teacher=True))
    assert own.store.runs() == []


def test_the_token_is_in_no_link_of_a_view(in_class: None) -> None:
    """The teacher shows a view to the class and copies its link."""
    for name in page.names():
        view = AppTest.from_string(f"from app.page import show; show({name!r})", default_timeout=300)
        view.query_params["token"] = teacher_token(secret())
        view.run()
        assert not view.exception
        assert view.code or page.view(name).misfit(worlds.load(worlds.default()))
        assert not [code.value for code in view.code if teacher_token(secret()) in code.value]


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with folder() as place, serving(place / "runs.db", "--class", "--host", "lab.example") as server:
        yield server


def train(server: Server, seed: int, cookie: str, address: str = "") -> list[str]:
    """Open Live as a browser with this cookie does, and press Train; the errors that are shown then."""
    query, url = f"seed={seed}&steps=2000&batch=2", f"ws://127.0.0.1:{server.port}/_stcore/stream"
    headers = {"Cookie": f"{COOKIE}={cookie}", **({"X-Forwarded-For": address} if address else {})}
    message = BackMsg()
    message.rerun_script.query_string, message.rerun_script.page_name = query, "live"
    with connect(
        url,
        subprotocols=[Subprotocol("streamlit")],
        max_size=None,
        open_timeout=60,
        additional_headers=headers,
    ) as socket:
        socket.send(message.SerializeToString())
        buttons = [m.delta.new_element.button for m in heard(socket) if m.delta.new_element.HasField("button")]
        (button,) = [button for button in buttons if button.label == "Train"]
        message.rerun_script.widget_states.widgets.add(id=button.id, trigger_value=True)
        socket.send(message.SerializeToString())
        shown_now = [m.delta.new_element.alert.body for m in heard(socket) if m.delta.new_element.HasField("alert")]
    return [text.replace("\\", "") for text in shown_now]


def heard(socket: ClientConnection) -> list[ForwardMsg]:
    messages: list[ForwardMsg] = []
    while not messages or messages[-1].WhichOneof("type") != "script_finished":
        received = socket.recv(timeout=PATIENCE)
        assert isinstance(received, bytes)
        messages.append(ForwardMsg.FromString(received))
    return messages


@pytest.mark.slow
def test_random_cookies_are_one_viewer(shared: Server) -> None:
    """Over real sockets: forged names share what one viewer may have, and who has a signed one still gets in."""
    forged = [secrets.token_hex(16), f"{secrets.token_hex(16)}.{secrets.token_hex(16)}", "", "x", secrets.token_hex(16)]
    said = [train(shared, seed, cookie) for seed, cookie in enumerate(forged)]
    full = ["You have 3 runs or races waiting or running, the most here; wait for one, or stop one."]
    assert said == [[], [], [], full, full]
    found = re.search(rf"{COOKIE}=([0-9a-f.]+)", shared.get("/")[1]["set-cookie"])
    assert found
    assert train(shared, 9, found[1]) == []
    assert train(shared, 10, "", address="10.0.0.7") == []  # a proxy on this machine says who is behind it
    health = shared.json("/api/health")
    assert health["running"] + health["waiting"] == 5


@pytest.mark.slow
def test_the_token_is_printed_once_and_opens_the_page(shared: Server) -> None:
    found = re.fullmatch(
        rf"For the teacher alone: http://lab\.example:{shared.port}/teacher\?token=([0-9a-f]{{32}})\n", shared.lines[1]
    )
    assert found
    titles = [m.delta.new_element.heading.body for m in shared.session(f"token={found[1]}", "teacher")]
    assert "Teacher: the queue and its limits" in titles
    refused = shared.session("token=" + "0" * 32, "teacher")
    assert [m.delta.new_element.alert.body for m in refused if m.delta.new_element.HasField("alert")]
    assert not [m for m in refused if m.delta.new_element.HasField("button")]
    assert shared.log().count(found[1]) == 1
