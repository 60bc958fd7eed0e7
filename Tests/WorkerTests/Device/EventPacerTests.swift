import CaptureCore
import CaptureSources
import Testing

@testable import Worker

@Suite struct EventPacerTests {
    private func moved(_ value: Int64, at time: Int64) -> DeviceEvent {
        .control(ControlEvent(id: 1, value: .integer(value), time: time))
    }

    private let set = DeviceEvent.control(ControlEvent(id: 2, value: .integer(1), time: 0))

    @Test func holdsWhatMovesByItself() {
        var pacer = EventPacer()
        let first = pacer.take([moved(1, at: 0)], at: 0) { $0 == 1 }
        #expect(first.events == [moved(1, at: 0)] && first.wake == nil)
        let second = pacer.take([moved(2, at: 10)], at: 10) { $0 == 1 }
        #expect(second.events == [] && second.wake == EventPacer.period)
        let third = pacer.take([moved(3, at: 20)], at: 20) { $0 == 1 }
        #expect(third.events == [] && third.wake == EventPacer.period)
        #expect(pacer.due(at: EventPacer.period) == [moved(2, at: 10), moved(3, at: 20)])
        #expect(pacer.take([moved(4, at: 30)], at: EventPacer.period + 1) { $0 == 1 }.wake == 2 * EventPacer.period)
    }

    @Test func everythingElseGoesAtOnce() {
        var pacer = EventPacer()
        _ = pacer.take([moved(1, at: 0)], at: 0) { $0 == 1 }
        _ = pacer.take([moved(2, at: 1)], at: 1) { $0 == 1 }
        let next = pacer.take([set], at: 2) { $0 == 1 }
        #expect(next.events == [moved(2, at: 1), set] && next.wake == nil)
        // A mode that was left is news, also of a control that moved until then.
        let flags = DeviceEvent.control(ControlEvent(id: 1, flags: [], time: 3))
        #expect(pacer.take([flags], at: 3) { $0 == 1 }.events == [flags])
        #expect(pacer.take([.sourceChanged(resolution: true)], at: 4) { _ in true }.events.count == 1)
    }
}
