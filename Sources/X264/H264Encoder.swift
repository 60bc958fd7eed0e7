import CX264

/// What libx264 refuses.
public struct H264Error: Error, Hashable, Sendable, CustomStringConvertible {
    public var operation: String
    public var message: String

    public var description: String { "\(operation): \(message)" }
}

/// What is to be encoded.
public struct H264Settings: Hashable, Sendable {
    /// Pixels; both even.
    public var width: Int
    public var height: Int
    /// Frames in so many seconds, as a fraction.
    public var rateNumerator: Int
    public var rateDenominator: Int
    /// Frames from one key frame to the next at most.
    public var keyframeInterval: Int
    /// The quality, as the quantiser that it comes to: 0 (lossless) to 51 (`rc.f_rf_constant`).
    public var quality: Int

    public init(
        width: Int, height: Int, rateNumerator: Int, rateDenominator: Int, keyframeInterval: Int, quality: Int = 23
    ) {
        self.width = width
        self.height = height
        self.rateNumerator = rateNumerator
        self.rateDenominator = rateDenominator
        self.keyframeInterval = keyframeInterval
        self.quality = quality
    }
}

/// A picture in memory as NV12: 8 bits of luma, then pairs of chroma for two by two pixels; sRGB in limited range, with
/// BT.601's matrix.
public struct NV12Planes {
    var luma: UnsafeMutableRawPointer
    var lumaStride: Int
    var chroma: UnsafeMutableRawPointer
    var chromaStride: Int

    /// The memory is not owned, and only read.
    public init(
        luma: UnsafeMutableRawPointer, lumaStride: Int, chroma: UnsafeMutableRawPointer, chromaStride: Int
    ) {
        self.luma = luma
        self.lumaStride = lumaStride
        self.chroma = chroma
        self.chromaStride = chromaStride
    }
}

/// Encodes pictures to H.264 as a camera does (ITU-T H.264, Annex B): each as soon as it comes (`zerolatency`), each
/// building on the one before, key frames with their parameter sets. Used by one thread at a time.
public final class H264Encoder {
    public let settings: H264Settings
    private let encoder: OpaquePointer
    private var count: Int64 = 0

    public init(_ settings: H264Settings) throws(H264Error) {
        guard (2...16384).contains(settings.width), (2...16384).contains(settings.height), settings.width % 2 == 0,
            settings.height % 2 == 0, let rate = UInt32(exactly: settings.rateNumerator),
            let base = UInt32(exactly: settings.rateDenominator), rate > 0, base > 0, settings.keyframeInterval > 0
        else { throw H264Error(operation: "x264_encoder_open", message: "H.264 does not support this size or rate") }
        var parameters = x264_param_t()
        guard x264_param_default_preset(&parameters, "ultrafast", "zerolatency") == 0 else {
            throw H264Error(operation: "x264_param_default_preset", message: "the library has no such preset")
        }
        parameters.i_log_level = X264_LOG_NONE
        parameters.i_threads = 1
        parameters.i_bitdepth = 8
        parameters.i_csp = X264_CSP_NV12
        parameters.i_width = Int32(settings.width)
        parameters.i_height = Int32(settings.height)
        parameters.b_vfr_input = 0
        parameters.i_fps_num = rate
        parameters.i_fps_den = base
        parameters.i_keyint_max = Int32(clamping: settings.keyframeInterval)
        parameters.i_scenecut_threshold = 0
        parameters.b_annexb = 1
        parameters.b_repeat_headers = 1
        parameters.rc.i_rc_method = X264_RC_CRF
        parameters.rc.f_rf_constant = Float(min(max(settings.quality, 0), 51))
        // ITU-T H.264, tables E-3 to E-5: sRGB, with the matrix of BT.601 (SMPTE 170M).
        parameters.vui.i_colorprim = 1
        parameters.vui.i_transfer = 13
        parameters.vui.i_colmatrix = 6
        parameters.vui.b_fullrange = 0
        guard let encoder = cx264_encoder_open(&parameters) else {
            throw H264Error(operation: "x264_encoder_open", message: "\(settings.width)x\(settings.height) refused")
        }
        self.encoder = encoder
        self.settings = settings
    }

    deinit { x264_encoder_close(encoder) }

    /// Encodes the next picture.
    ///
    /// - Parameter asKeyframe: it is to build on none before; others become key frames in their turn.
    /// - Returns: the bytes that were written.
    public func encode(
        _ planes: NV12Planes, asKeyframe: Bool, into output: UnsafeMutableRawBufferPointer
    ) throws(H264Error) -> Int {
        let operation = "x264_encoder_encode"
        guard planes.lumaStride >= settings.width, planes.chromaStride >= settings.width else {
            throw H264Error(operation: operation, message: "a stride is shorter than a line")
        }
        var picture = x264_picture_t()
        x264_picture_init(&picture)
        picture.i_type = asKeyframe ? X264_TYPE_IDR : X264_TYPE_AUTO
        picture.i_pts = count
        count += 1
        picture.img.i_csp = X264_CSP_NV12
        picture.img.i_plane = 2
        picture.img.plane.0 = planes.luma.assumingMemoryBound(to: UInt8.self)
        picture.img.plane.1 = planes.chroma.assumingMemoryBound(to: UInt8.self)
        picture.img.i_stride.0 = Int32(clamping: planes.lumaStride)
        picture.img.i_stride.1 = Int32(clamping: planes.chromaStride)
        var units: UnsafeMutablePointer<x264_nal_t>?
        var unitCount: Int32 = 0
        var result = x264_picture_t()
        let bytes = x264_encoder_encode(encoder, &units, &unitCount, &picture, &result)
        guard bytes > 0, unitCount > 0, let start = units?.pointee.p_payload else {
            throw H264Error(operation: operation, message: bytes < 0 ? "failed" : "no picture came out")
        }
        guard Int(bytes) <= output.count else {
            throw H264Error(operation: operation, message: "there is no room for \(bytes) bytes")
        }
        // All units of a picture lie together.
        output.copyMemory(from: UnsafeRawBufferPointer(start: start, count: Int(bytes)))
        return Int(bytes)
    }
}
