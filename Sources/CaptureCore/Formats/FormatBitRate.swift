extension PixelFormat {
    /// Bits of a pixel as a camera sends it.
    ///
    /// For compressed formats an estimate, as what a picture takes depends on what is seen: 2 for JPEG, which a
    /// detailed picture at a camera's usual quality takes, and 0.25 for H.264. Formats that aren't known count as 16.
    var bitsPerPixel: Double {
        switch self {
        case .motionJPEG, .jpeg: return 2
        case .h264: return 0.25
        default: break
        }
        let sample = Dimensions(width: 16, height: 16)
        if let layout = FrameLayout.packed(self, sample) {
            return Double(layout.totalBytes * 8) / Double(sample.width * sample.height)
        }
        return Self.others[name] ?? 16
    }

    private static let others: [String: Double] = {
        var others: [String: Double] = [:]
        for (bits, names) in [
            (8, "Y8I,RGB1"), (9, "YUV9,YVU9"), (12, "NV21,NM12,NM21,YV12,YM12,YM21,M420,411P"),
            (24, "NV24,NV42,YM24,YM42,YUV3"),
            (32, "XR24,AR24,BGR4,BX24,BA24,RGB4,XB24,AB24,RX24,RA24,AYUV,XYUV,YUV4,VUYA,VUYX,YUVA,YUVX"),
        ] {
            for name in names.split(separator: ",") { others[String(name)] = Double(bits) }
        }
        return others
    }()
}

extension StreamSetting {
    /// Bits a second that the device sends when it is set so; for compressed formats an estimate
    /// (``PixelFormat/bitsPerPixel``). A rate that the driver doesn't tell counts as ``FrameDuration/usual``.
    public var bitRate: Double {
        Double(format.dimensions.width) * Double(format.dimensions.height) * format.pixelFormat.bitsPerPixel
            * (frameDuration ?? .usual).framesPerSecond
    }
}
