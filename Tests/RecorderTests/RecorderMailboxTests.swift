import LinuxIO
import Testing

@testable import Recorder

@Suite("What the threads of a recorder tell one another")
struct RecorderMailboxTests {
    @Test func `pauses that nobody obeys do not pile up`() throws {
        let mailbox = try RecorderMailbox(work: Semaphore())
        for number in 0..<RecorderMailbox.maximumCommands {
            let time = Int64(number)
            #expect(mailbox.order(number % 2 == 0 ? .pause(time) : .resume(time)))
        }
        let isTaken = mailbox.order(.pause(100))
        #expect(!isTaken)
        #expect(mailbox.takeCommand() == .pause(0))
        let isTakenNow = mailbox.order(.pause(100))
        #expect(isTakenNow)
    }

    @Test func `a camera takes over when it may, with a picture that is newer than all before`() {
        let turn = CameraSwitch()
        func push(_ input: Int, _ time: Int64) -> SampleQueue.Outcome? {
            turn.push(Sample(time: time, input: input)) { .taken }
        }
        let first = push(0, 100)
        #expect(first == .taken)
        turn.expect(1)
        let isEarly = turn.take(1, at: 100)
        let isUnasked = turn.take(2, at: 200)
        #expect(!isEarly && !isUnasked && turn.isOf(0))
        let isTaken = turn.take(1, at: 101)
        let (old, new) = (push(0, 102), push(1, 101))
        #expect(isTaken && old == nil && new == .taken && turn.isOf(1))
        var isTold = false
        turn.ifOf(0) { isTold = true }
        #expect(!isTold, "what becomes of a camera that was left is nobody's concern")
    }

    @Test func `a camera whose pictures come late takes over all the same, and is waited for for a second`() {
        let turn = CameraSwitch()
        func push(_ input: Int, _ time: Int64) -> SampleQueue.Outcome? {
            turn.push(Sample(time: time, input: input)) { .taken }
        }
        let first = push(0, 100)
        turn.expect(1)
        let isEarly = turn.take(1, at: 90)
        let yielded = push(0, 133)
        let isTaken = turn.take(1, at: 123)
        let (old, new) = (push(0, 166), push(1, 123))
        #expect(first == .taken && !isEarly && yielded == nil && isTaken && old == nil && new == .taken)

        turn.expect(2)
        let isEarlyAgain = turn.take(2, at: 120)
        let (last, waited, later) = (
            push(1, 122 + CameraSwitch.grace), push(1, 123 + CameraSwitch.grace), turn.take(2, at: 400)
        )
        let further = push(1, 200 + CameraSwitch.grace)
        #expect(
            !isEarlyAgain && last == nil && waited == .taken && !later && further == .taken,
            "it goes on with what it has")
        turn.expect(0)
        let isTakenBack = turn.take(2, at: .max)
        #expect(!isTakenBack && turn.isOf(1))
    }
}
