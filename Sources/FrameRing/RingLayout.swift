public import BusProtocol

/// Where everything lies in a ring: bytes from the start of its memory. `Protocol/RING.md` has the same numbers in
/// words.
public enum RingLayout {
    /// `CAMBRING`, as it stands in memory.
    public static let magic: UInt64 = 0x474E_4952_424D_4143
    public static let version: UInt32 = 2

    // What never changes while the ring lives.
    static let versionOffset = 8
    static let slotsOffset = 12
    static let keepOffset = 16
    static let recordBytesOffset = 20
    static let tableOffsetOffset = 24
    static let pixelsOffsetOffset = 28
    static let slotBytesOffset = 32
    static let sizeOffset = 40
    static let ringOffset = 48
    static let streamOffset = 64
    static let deviceOffset = 80
    static let renditionOffset = 112
    static let renditionBytes = 128
    static let formatOffset = 240
    static let widthOffset = 244
    static let heightOffset = 248
    static let planeCountOffset = 252
    static let planesOffset = 256
    static let planeBytes = 12
    static let kindOffset = 352
    static let rateOffset = 356
    static let channelsOffset = 360
    static let soundFrameBytesOffset = 364
    static let sampleFormatOffset = 368
    static let colorOffset = 356
    static let chromaLocationOffset = 360
    static let bitsOffset = 361
    static let alignmentOffset = 362
    static let orientationOffset = 363
    static let pixelAspectRatioOffset = 364
    static let cleanApertureOffset = 372
    static let frameDurationOffset = 388
    static let metersPerStepOffset = 400

    // What changes: a cache line of its own.
    static let countOffset = 448
    static let newestOffset = 452
    static let closedOffset = 456

    /// Bytes of the head before the table.
    public static let headBytes = 512
    /// One cache line per slot: its stamp, and what is told of the frame in it.
    public static let recordBytes = 64
    public static let pageBytes = 4096

    /// In place of a slot's number: none yet.
    static let noSlot = UInt32.max

    public static let maximumSlots = 256
    public static let maximumPlanes = 8
    static let maximumRecordBytes = 4096
    static let maximumTableOffset = 1 << 20
    static let maximumSide = 1 << 16
    /// Of rates, and of numbers of channels.
    static let maximumNumber = Int(Int32.max)
}

/// What a ring is, and what all frames in it share: the part of its head that never changes.
public struct RingDescription: Hashable, Sendable {
    /// One plane of the picture within its slot.
    public struct Plane: Hashable, Sendable {
        /// Bytes from the start of the slot.
        public var offset: Int
        /// Bytes from one line to the next; 0 for compressed pictures.
        public var stride: Int
        /// Bytes of the plane; for a compressed picture the room set aside: each frame says how many it has.
        public var bytes: Int

        public init(offset: Int, stride: Int, bytes: Int) {
            self.offset = offset
            self.stride = stride
            self.bytes = bytes
        }
    }

    /// What periods of sound are made of.
    public struct Sound: Hashable, Sendable {
        /// `s16`, as in a sound's header: at most 16 bytes.
        public var sampleFormat: String
        /// Frames a second.
        public var rate: Int
        public var channels: Int
        /// Bytes of one frame: of one sample of each channel.
        public var frameBytes: Int

        public init(sampleFormat: String, rate: Int, channels: Int, frameBytes: Int) {
            self.sampleFormat = sampleFormat
            self.rate = rate
            self.channels = channels
            self.frameBytes = frameBytes
        }
    }

    /// A random id, new with each ring: 16 characters.
    public var ring: String
    /// That of the stream whose frames these are: at most 16 characters.
    public var stream: String
    /// The device's id: at most 32 characters.
    public var device: String
    /// The rendition in its one spelling: at most 128 bytes.
    public var rendition: String
    /// The pixels' four-character code (`V4L2_PIX_FMT_*`); 0 of sound, and so are width and height.
    public var format: UInt32
    public var width: Int
    public var height: Int
    /// 1 to 8.
    public var planes: [Plane]
    /// At least so many frames are published after one before its slot is used again.
    public var keep: Int
    public var slots: Int
    /// Bytes from one slot to the next, a multiple of 4096.
    public var slotBytes: Int
    /// Degrees clockwise that a picture has to be turned to be upright: 0, 90, 180 or 270.
    public var orientation = 0
    /// Left and right have to be exchanged after that.
    public var isMirrored = false
    /// What the source states of the pictures, beside what is above; nil of sound.
    public var extensions: FormatExtensions?
    /// nil: its frames are pictures.
    public var sound: Sound?

    public init(
        ring: String, stream: String, device: String, rendition: String, format: UInt32, width: Int, height: Int,
        planes: [Plane],
        extensions: FormatExtensions? = FormatExtensions(color: ColorDescription(range: .video)), keep: Int, slots: Int,
        slotBytes: Int
    ) {
        self.ring = ring
        self.stream = stream
        self.device = device
        self.rendition = rendition
        self.format = format
        self.width = width
        self.height = height
        self.planes = planes
        self.extensions = extensions
        self.keep = keep
        self.slots = slots
        self.slotBytes = slotBytes
    }

    /// The description of a ring whose frames are periods of sound.
    ///
    /// - Parameter periodBytes: of a period at most; what is left of its slot's pages stays empty.
    public init(
        ring: String, stream: String, device: String, rendition: String, sound: Sound, periodBytes: Int, keep: Int,
        slots: Int
    ) {
        let pages = (max(1, periodBytes) - 1) / RingLayout.pageBytes + 1
        self.init(
            ring: ring, stream: stream, device: device, rendition: rendition, format: 0, width: 0, height: 0,
            planes: [Plane(offset: 0, stride: 0, bytes: periodBytes)], extensions: nil, keep: keep, slots: slots,
            slotBytes: pages * RingLayout.pageBytes)
        self.sound = sound
    }

    /// Frames are compressed pictures of changing size.
    public var isCompressed: Bool { planes.allSatisfy { $0.stride == 0 } }
}

/// A ring's description together with where its table and its slots lie.
public struct RingPlan: Hashable, Sendable {
    public var description: RingDescription
    /// Bytes from one slot's record to the next.
    public var recordBytes: Int
    public var tableOffset: Int
    public var pixelsOffset: Int
    /// Bytes of the whole ring.
    public var size: Int

    /// The plan of a new ring.
    ///
    /// - Throws: what can't be.
    public init(_ description: RingDescription) throws(RingError.Flaw) {
        self.description = description
        recordBytes = RingLayout.recordBytes
        tableOffset = RingLayout.headBytes
        guard (2...RingLayout.maximumSlots).contains(description.slots) else { throw .slots }
        let table = tableOffset + description.slots * recordBytes
        pixelsOffset = (table + RingLayout.pageBytes - 1) / RingLayout.pageBytes * RingLayout.pageBytes
        let (pixels, overflow) = description.slotBytes.multipliedReportingOverflow(by: description.slots)
        let (size, more) = pixels.addingReportingOverflow(pixelsOffset)
        guard !overflow, !more else { throw .slotBytes }
        self.size = size
        try check()
    }

    /// Reads a head that somebody else wrote. Nothing in it is believed unchecked, and it is read once.
    ///
    /// - Parameters:
    ///   - head: the memory's beginning: at least ``RingLayout/headBytes``, or all of it.
    ///   - memoryBytes: bytes of the whole memory.
    public init(head: UnsafeRawBufferPointer, memoryBytes: Int) throws(RingError.Flaw) {
        guard head.count >= RingLayout.headBytes, memoryBytes >= head.count else { throw .tooShort }
        func number(_ offset: Int) -> UInt32 {
            UInt32(littleEndian: head.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        func long(_ offset: Int) throws(RingError.Flaw) -> Int {
            let value = UInt64(littleEndian: head.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            guard let value = Int(exactly: value) else {
                throw offset == RingLayout.slotBytesOffset ? .slotBytes : .size
            }
            return value
        }
        func text(_ offset: Int, _ room: Int) throws(RingError.Flaw) -> String {
            let field = head[offset..<offset + room]
            let end = field.firstIndex(of: 0) ?? field.endIndex
            guard field[end...].allSatisfy({ $0 == 0 }), let text = String(validating: field[..<end], as: UTF8.self)
            else { throw .text }
            return text
        }
        guard UInt64(littleEndian: head.loadUnaligned(as: UInt64.self)) == RingLayout.magic else { throw .magic }
        guard number(RingLayout.versionOffset) == RingLayout.version else { throw .version }
        let kind = number(RingLayout.kindOffset)
        guard kind <= 1 else { throw .kind }
        let count = Int(number(RingLayout.planeCountOffset))
        guard (1...RingLayout.maximumPlanes).contains(count) else { throw .planes }
        description = RingDescription(
            ring: try text(RingLayout.ringOffset, 16), stream: try text(RingLayout.streamOffset, 16),
            device: try text(RingLayout.deviceOffset, 32),
            rendition: try text(RingLayout.renditionOffset, RingLayout.renditionBytes),
            format: number(RingLayout.formatOffset), width: Int(number(RingLayout.widthOffset)),
            height: Int(number(RingLayout.heightOffset)),
            planes: (0..<count).map { index in
                let start = RingLayout.planesOffset + index * RingLayout.planeBytes
                return RingDescription.Plane(
                    offset: Int(number(start)), stride: Int(number(start + 4)), bytes: Int(number(start + 8)))
            },
            extensions: kind == 1 ? nil : FormatExtensions(head: head),
            keep: Int(number(RingLayout.keepOffset)), slots: Int(number(RingLayout.slotsOffset)),
            slotBytes: try long(RingLayout.slotBytesOffset))
        if kind == 1 {
            description.sound = RingDescription.Sound(
                sampleFormat: try text(RingLayout.sampleFormatOffset, 16), rate: Int(number(RingLayout.rateOffset)),
                channels: Int(number(RingLayout.channelsOffset)),
                frameBytes: Int(number(RingLayout.soundFrameBytesOffset)))
        } else {
            description.orientation = Int(head[RingLayout.orientationOffset] & 3) * 90
            description.isMirrored = head[RingLayout.orientationOffset] & 4 != 0
        }
        recordBytes = Int(number(RingLayout.recordBytesOffset))
        tableOffset = Int(number(RingLayout.tableOffsetOffset))
        pixelsOffset = Int(number(RingLayout.pixelsOffsetOffset))
        size = try long(RingLayout.sizeOffset)
        try check()
        guard size <= memoryBytes else { throw .size }
    }

    /// As ``init(head:memoryBytes:)-(UnsafeRawBufferPointer,_)``, from a copy.
    public init(head: [UInt8], memoryBytes: Int) throws(RingError.Flaw) {
        self = try head.withUnsafeBytes { bytes in
            Result { () throws(RingError.Flaw) in try RingPlan(head: bytes, memoryBytes: memoryBytes) }
        }.get()
    }

    /// Writes the part of the head that never changes.
    public func write(to head: UnsafeMutableRawBufferPointer) {
        guard head.count >= RingLayout.headBytes else { return }
        func number(_ offset: Int, _ value: Int) {
            head.storeBytes(of: UInt32(clamping: value).littleEndian, toByteOffset: offset, as: UInt32.self)
        }
        func long(_ offset: Int, _ value: Int) {
            head.storeBytes(of: UInt64(clamping: value).littleEndian, toByteOffset: offset, as: UInt64.self)
        }
        func text(_ offset: Int, _ room: Int, _ value: String) {
            for (index, byte) in value.utf8.prefix(room).enumerated() { head[offset + index] = byte }
        }
        number(RingLayout.versionOffset, Int(RingLayout.version))
        number(RingLayout.slotsOffset, description.slots)
        number(RingLayout.keepOffset, description.keep)
        number(RingLayout.recordBytesOffset, recordBytes)
        number(RingLayout.tableOffsetOffset, tableOffset)
        number(RingLayout.pixelsOffsetOffset, pixelsOffset)
        long(RingLayout.slotBytesOffset, description.slotBytes)
        long(RingLayout.sizeOffset, size)
        text(RingLayout.ringOffset, 16, description.ring)
        text(RingLayout.streamOffset, 16, description.stream)
        text(RingLayout.deviceOffset, 32, description.device)
        text(RingLayout.renditionOffset, RingLayout.renditionBytes, description.rendition)
        number(RingLayout.formatOffset, Int(description.format))
        number(RingLayout.widthOffset, description.width)
        number(RingLayout.heightOffset, description.height)
        number(RingLayout.planeCountOffset, description.planes.count)
        for (index, plane) in description.planes.enumerated() {
            let start = RingLayout.planesOffset + index * RingLayout.planeBytes
            number(start, plane.offset)
            number(start + 4, plane.stride)
            number(start + 8, plane.bytes)
        }
        if let sound = description.sound {
            number(RingLayout.kindOffset, 1)
            number(RingLayout.rateOffset, sound.rate)
            number(RingLayout.channelsOffset, sound.channels)
            number(RingLayout.soundFrameBytesOffset, sound.frameBytes)
            text(RingLayout.sampleFormatOffset, 16, sound.sampleFormat)
        } else {
            description.extensions?.write(toHead: head)
            let quarters = UInt8(truncatingIfNeeded: description.orientation / 90 & 3)
            head[RingLayout.orientationOffset] = quarters | (description.isMirrored ? 4 : 0)
        }
        head.storeBytes(of: RingLayout.magic.littleEndian, as: UInt64.self)
    }

    /// Where a slot's record lies.
    func record(_ slot: Int) -> Int { tableOffset + slot * recordBytes }

    /// Where a slot's pixels lie.
    public func pixels(_ slot: Int) -> Int { pixelsOffset + slot * description.slotBytes }

    // In the order of the vectors: the first flaw found is the one that is told.
    private func check() throws(RingError.Flaw) {
        let ring = description
        guard (2...RingLayout.maximumSlots).contains(ring.slots) else { throw .slots }
        guard (1..<ring.slots).contains(ring.keep) else { throw .keep }
        guard (RingLayout.recordBytes...RingLayout.maximumRecordBytes).contains(recordBytes), recordBytes % 64 == 0
        else { throw .recordBytes }
        guard (RingLayout.headBytes...RingLayout.maximumTableOffset).contains(tableOffset), tableOffset % 64 == 0
        else { throw .tableOffset }
        guard pixelsOffset % RingLayout.pageBytes == 0, pixelsOffset >= tableOffset + ring.slots * recordBytes
        else { throw .pixelsOffset }
        guard ring.slotBytes > 0, ring.slotBytes % RingLayout.pageBytes == 0, ring.slotBytes <= Int(UInt32.max)
        else { throw .slotBytes }
        // Neither can overflow: both factors have been bounded.
        guard size == pixelsOffset + ring.slots * ring.slotBytes else { throw .size }
        guard ring.ring.utf8.count == 16, (1...16).contains(ring.stream.utf8.count),
            (1...32).contains(ring.device.utf8.count),
            (1...RingLayout.renditionBytes).contains(ring.rendition.utf8.count)
        else { throw .text }
        if let sound = ring.sound {
            guard sound.isPossible, ring.format == 0, ring.width == 0, ring.height == 0, ring.isCompressed
            else { throw .sound }
        } else {
            guard (1...RingLayout.maximumSide).contains(ring.width), (1...RingLayout.maximumSide).contains(ring.height)
            else { throw .dimensions }
        }
        guard (1...RingLayout.maximumPlanes).contains(ring.planes.count) else { throw .planes }
        for plane in ring.planes {
            guard plane.offset >= 0, plane.stride >= 0, plane.bytes >= 0, plane.offset <= ring.slotBytes,
                plane.bytes <= ring.slotBytes - plane.offset
            else { throw .planes }
        }
        // A compressed picture is one plane.
        guard ring.planes.count == 1 || ring.planes.allSatisfy({ $0.stride > 0 }) else { throw .planes }
    }
}

extension RingDescription.Sound {
    fileprivate var isPossible: Bool {
        let numbers = 1...RingLayout.maximumNumber
        return (1...16).contains(sampleFormat.utf8.count) && numbers.contains(rate) && numbers.contains(channels)
            && numbers.contains(frameBytes)
    }
}
