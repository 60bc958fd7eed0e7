import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct BatchTransactionTests {
    private let error = BusError(.controlOutOfRange, "No.", ["control": "brightness"])
    private let stuck = BusError(.controlBusy, "No.", ["notRolledBack": true])
    private let gone = BusError(.deviceDisconnected, "Gone.")

    @Test func allPrepareThenAllApply() {
        var batch = BatchTransaction(devices: ["a", "b", "a"], dryRun: false)
        #expect(batch.start() == [.prepare("a"), .prepare("b")])
        #expect(batch.start().isEmpty)
        #expect(batch.prepared("b", .success(1)).isEmpty)
        #expect(batch.awaited == ["a"])
        #expect(batch.prepared("a", .success(2)) == [.apply("a"), .apply("b")])
        #expect(batch.applied("a", .success("A")).isEmpty)
        #expect(batch.applied("b", .success("B")) == [.decide])
        #expect(!batch.isFinished)
        #expect(batch.decided(.success(())) == [.finish(.success(["a": "A", "b": "B"]))])
        #expect(batch.decided(.success(())).isEmpty)
        #expect(batch.isFinished && batch.awaited.isEmpty)
    }

    @Test func aDryRunEndsWhenAllHavePrepared() {
        var batch = BatchTransaction(devices: ["a", "b"], dryRun: true)
        _ = batch.start()
        _ = batch.prepared("a", .success(1))
        #expect(batch.prepared("b", .success(2)) == [.finish(.success(["a": 1, "b": 2]))])
    }

    @Test func noDevicesAreDoneAtOnce() {
        var batch = BatchTransaction(devices: [], dryRun: false)
        #expect(batch.start() == [.finish(.success([:]))])
        #expect(batch.start().isEmpty)
    }

    @Test func theFirstRefusalEndsItBeforeAnythingIsTouched() {
        var batch = BatchTransaction(devices: ["a", "b"], dryRun: false)
        _ = batch.start()
        #expect(
            batch.prepared("b", .failure(error))
                == [.finish(.failure(error, device: "b", rolledBack: [], notRolledBack: []))])
        #expect(batch.prepared("a", .success(1)).isEmpty)
    }

    @Test func aFailureRollsBackThoseThatAppliedBeforeAndAfter() {
        var batch = BatchTransaction(devices: ["a", "b", "c"], dryRun: false)
        _ = batch.start()
        for device in ["a", "b", "c"] { _ = batch.prepared(device, .success(1)) }
        #expect(batch.applied("a", .success(1)).isEmpty)
        #expect(batch.applied("b", .failure(error)) == [.rollBack("a")])
        #expect(batch.applied("c", .success(1)) == [.rollBack("c")])
        #expect(batch.rolledBack("c", .success(())).isEmpty)
        let actions = batch.rolledBack("a", .failure(gone))
        #expect(actions == [.finish(.failure(error, device: "b", rolledBack: ["c"], notRolledBack: ["a"]))])
        guard case .finish(let outcome) = actions.first else { return }
        #expect(outcome.error?.reason == .controlOutOfRange)
        #expect(
            outcome.error?.data == [
                "control": "brightness", "device": "b", "rolledBack": ["c"], "notRolledBack": ["a"],
            ])
        #expect(outcome.error?.message.contains("put back on a") == true)
    }

    @Test func aDeviceThatCouldNotUndoItsOwnFailureIsTold() {
        var batch = BatchTransaction(devices: ["a"], dryRun: false)
        _ = batch.start()
        _ = batch.prepared("a", .success(1))
        #expect(
            batch.applied("a", .failure(stuck))
                == [.finish(.failure(stuck, device: "a", rolledBack: [], notRolledBack: ["a"]))])
    }

    @Test func aLostDeviceFailsTheBatchAtEachStage() {
        func batch(applied: [String]) -> BatchTransaction {
            var batch = BatchTransaction(devices: ["a", "b"], dryRun: false)
            _ = batch.start()
            _ = batch.prepared("a", .success(1))
            _ = batch.prepared("b", .success(1))
            for device in applied { _ = batch.applied(device, .success(1)) }
            return batch
        }
        var preparing = BatchTransaction(devices: ["a", "b"], dryRun: true)
        _ = preparing.start()
        _ = preparing.prepared("a", .success(1))
        #expect(
            preparing.lost("a", gone) == [.finish(.failure(gone, device: "a", rolledBack: [], notRolledBack: []))])

        // What had checked its change ends while another still checks, and when it has made it.
        var checked = BatchTransaction(devices: ["a", "b"], dryRun: false)
        _ = checked.start()
        #expect(checked.ended("a", gone).isEmpty)
        _ = checked.prepared("a", .success(1))
        #expect(checked.ended("a", gone) == [.finish(.failure(gone, device: "a", rolledBack: [], notRolledBack: []))])
        #expect(checked.prepared("b", .success(1)).isEmpty)
        var made = batch(applied: ["a"])
        #expect(made.ended("a", gone).isEmpty && made.ended("b", gone).isEmpty)
        #expect(made.applied("b", .success(1)) == [.decide])

        var applying = batch(applied: ["a"])
        #expect(applying.lost("b", gone) == [.rollBack("a")])
        #expect(applying.applied("b", .success(1)).isEmpty)
        #expect(
            applying.rolledBack("a", .success(()))
                == [.finish(.failure(gone, device: "b", rolledBack: ["a"], notRolledBack: ["b"]))])

        // It had applied, and another one still does.
        var applied = batch(applied: ["a"])
        #expect(applied.lost("a", gone).isEmpty)
        #expect(applied.applied("b", .success(1)) == [.rollBack("b")])
        #expect(
            applied.lost("b", gone)
                == [.finish(.failure(gone, device: "a", rolledBack: [], notRolledBack: ["a", "b"]))])
        #expect(applied.lost("a", gone).isEmpty)
    }

    /// Devices that answer in any order, fail and vanish at any stage, and answer twice or unasked.
    @Test(arguments: seeds) func randomCourses(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var failed = 0
        for round in 0..<500 {
            if course(&random, "seed \(seed), round \(round)") { failed += 1 }
        }
        #expect(failed > 50 && failed < 450, "seed \(seed): the courses are too dull")
    }

    /// True if the batch failed.
    private func course(_ random: inout SeededGenerator, _ comment: Comment) -> Bool {
        let devices = Array(["a", "b", "c", "d"].prefix(1 + random.below(4)))
        let dryRun = random.chance(15)
        let trouble = random.pick([0, 5, 30])
        var batch = BatchTransaction(devices: devices, dryRun: dryRun)
        var asked: [BatchTransaction.Action] = batch.start()
        var changed: Set<String> = []
        var outcomes: [BatchTransaction.Outcome] = []
        var isAnyPrepared: Set<String> = []
        while !asked.isEmpty {
            if random.chance(trouble / 3), let device = devices.randomElement(using: &random) {
                asked += batch.lost(device, gone)
            }
            if random.chance(5) {
                asked +=
                    batch.applied("x", .success(1)) + batch.rolledBack(devices[0] + "x", .success(()))
                    + batch.start()
            }
            let action = asked.remove(at: random.below(asked.count))
            let isFailing = random.chance(trouble)
            switch action {
            case .prepare(let device):
                isAnyPrepared.insert(device)
                asked += batch.prepared(device, isFailing ? .failure(error) : .success(1))
            case .apply(let device):
                #expect(isAnyPrepared == Set(devices), comment)
                #expect(!dryRun, comment)
                // A lost device may still do what it was asked; nobody hears of it.
                let isUndone = random.chance(80)
                if !isFailing || !isUndone { changed.insert(device) }
                asked += batch.applied(device, isFailing ? .failure(isUndone ? error : stuck) : .success(1))
            case .rollBack(let device):
                #expect(changed.contains(device), comment)
                if !isFailing { changed.remove(device) }
                asked += batch.rolledBack(device, isFailing ? .failure(error) : .success(()))
            case .decide:
                #expect(devices.count > 1 && isAnyPrepared == Set(devices), comment)
                asked += batch.decided(isFailing ? .failure(error) : .success(()))
            case .finish(let outcome):
                outcomes.append(outcome)
            }
        }
        #expect(outcomes.count == 1 && batch.isFinished && batch.awaited.isEmpty, comment)
        switch outcomes.first {
        case .success(let results):
            #expect(Set(results.keys) == Set(devices) && changed == (dryRun ? [] : Set(devices)), comment)
            return false
        case .failure(_, _, let rolledBack, let notRolledBack):
            #expect(changed.isSubset(of: notRolledBack), comment)
            #expect(changed.isDisjoint(with: rolledBack), comment)
            return true
        case nil: return false
        }
    }
}
