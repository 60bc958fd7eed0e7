import CV4L2
import Glibc
import Video4Linux

/// A V4L2 device that answers what a test tells it to, and `ENOTTY` to everything else, as a driver without the request
/// does.
final class V4L2ScriptedDevice: V4L2Device {
    let path = "/dev/scripted"
    let descriptor: CInt = -1
    private(set) var calls: [String: Int] = [:]
    /// Mappings that have not been given back.
    private(set) var mappings: [UnsafeMutableRawPointer: Int] = [:]
    /// All that were made, in their order.
    private(set) var mapped: [UnsafeMutableRawBufferPointer] = []
    private var answers: [V4L2Request: (UnsafeMutableRawPointer) -> Int32] = [:]

    /// Answers a request: `body` fills its structure, and its result is the error number or 0.
    func on<Argument>(_ request: V4L2Request, _ body: @escaping (inout Argument) -> Int32) {
        answers[request] = { body(&$0.assumingMemoryBound(to: Argument.self).pointee) }
    }

    func perform(_ request: V4L2Request, _ argument: UnsafeMutableRawPointer) -> Int32 {
        calls[request.name, default: 0] += 1
        return answers[request]?(argument) ?? ENOTTY
    }

    func map(length: Int, offset: Int) throws(V4L2Error) -> UnsafeMutableRawBufferPointer {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        if let start = memory.baseAddress { mappings[start] = length }
        mapped.append(memory)
        return memory
    }

    func unmap(_ memory: UnsafeMutableRawBufferPointer) {
        if let start = memory.baseAddress { mappings[start] = nil }
        memory.deallocate()
    }

    // MARK: Common scripts

    /// `VIDIOC_ENUM_FMT` with these formats.
    func offers(_ formats: String...) {
        on(.enumerateFormats) { (answer: inout v4l2_fmtdesc) in
            guard answer.index < formats.count else { return EINVAL }
            answer.pixelformat = fourCC(formats[Int(answer.index)])
            return 0
        }
    }

    /// `VIDIOC_ENUM_FRAMESIZES` with one discrete size.
    func offers(width: UInt32, height: UInt32) {
        on(.enumerateFrameSizes) { (answer: inout v4l2_frmsizeenum) in
            guard answer.index == 0 else { return EINVAL }
            answer.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
            answer.discrete = v4l2_frmsize_discrete(width: width, height: height)
            return 0
        }
    }
}

/// A four-character code as the kernel has it.
func fourCC(_ text: String) -> UInt32 {
    text.utf8.enumerated().reduce(0) { $0 | UInt32($1.element) << (8 * UInt32($1.offset)) }
}
