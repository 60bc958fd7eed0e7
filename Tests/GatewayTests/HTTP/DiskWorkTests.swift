import Glibc
import LinuxIO
import Testing

@testable import Gateway

/// What waits for a disk holds up nobody who doesn't.
@Suite(.timeLimit(.minutes(5))) struct DiskWorkTests {
    @Test func `disks that sleep leave all threads to others`() async {
        let count = 4 * sysconf(Int32(_SC_NPROCESSORS_ONLN))
        let (begun, awake) = (Semaphore(), Semaphore())
        let ended = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask {
                    let result = await DiskWork.run { () throws(SystemError) in
                        begun.signal()
                        awake.wait()
                    }
                    return (try? result.get()) != nil
                }
            }
            // All of them sleep at once, which the threads of tasks would not be enough for, and a task goes on beside
            // them.
            _ = await DiskWork.run { () throws(SystemError) in for _ in 0..<count { begun.wait() } }
            #expect(await Task.detached { 1 }.value == 1)
            for _ in 0..<count { awake.signal() }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(ended == count)
    }

    @Test func `what fails says so`() async {
        let result = await DiskWork.run { () throws(SystemError) -> Int in
            throw SystemError(code: EIO, operation: "read")
        }
        #expect(result == .failure(SystemError(code: EIO, operation: "read")))
    }
}
