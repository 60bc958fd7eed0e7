// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

func swift(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

func library(_ name: String, apt package: String) -> Target {
    .systemLibrary(name: name, providers: [.apt([package])])
}

let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

let package = Package(
    name: "CameraBus",
    products: [
        .executable(name: "camerabus", targets: ["camerabus"]),
        .executable(name: "camerabusd", targets: ["camerabusd"]),
        .executable(name: "camerabus-gateway", targets: ["camerabus-gateway"]),
        .executable(name: "camerabus-librarian", targets: ["camerabus-librarian"]),
        .executable(name: "camerabus-matcher", targets: ["camerabus-matcher"]),
        .executable(name: "camerabus-recorder", targets: ["camerabus-recorder"]),
        .executable(name: "camerabus-worker", targets: ["camerabus-worker"]),
        .library(name: "BusClient", targets: ["BusClient"]),
    ],
    dependencies: [
        // The command lines: help, completion and errors from one declaration.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // Log lines of the daemons, for the journal.
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        // The gateway's web server: sockets, HTTP and WebSockets.
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        // C shims
        library("CALSA", apt: "libasound2-dev"),
        library("CEXIF", apt: "libexif-dev"),
        library("CFFmpeg", apt: "libavformat-dev"),
        library("CJansson", apt: "libjansson-dev"),
        .target(name: "CLinux"),
        .target(name: "CPage"),
        library("CSQLite", apt: "libsqlite3-dev"),
        library("CSodium", apt: "libsodium-dev"),
        library("CTIFF", apt: "libtiff-dev"),
        // Compiles libtomlplusplus-dev's headers.
        .target(name: "CTOML"),
        library("CTurboJPEG", apt: "libturbojpeg0-dev"),
        library("CUdev", apt: "libudev-dev"),
        .target(name: "CV4L2"),
        library("CX264", apt: "libx264-dev"),
        // Links libzmq3-dev's library; no system library target, since it also keeps libzmq from ending the process.
        .target(name: "CZeroMQ", linkerSettings: [.linkedLibrary("zmq")]),

        // Wrappers: each knows its C library and nothing of this project.
        swift("ALSA", ["CALSA"]),
        swift("EXIF", ["CEXIF"]),
        swift("FFmpeg", ["CFFmpeg"]),
        swift("JSON", ["CJansson"]),
        swift("LinuxIO", ["CLinux"]),
        swift("SQLite", ["CSQLite"]),
        swift("Sodium", ["CSodium"]),
        swift("TIFF", ["CTIFF"]),
        swift("TurboJPEG", ["CTurboJPEG"]),
        swift("Udev", ["CUdev"]),
        swift("Video4Linux", ["CV4L2"]),
        swift("X264", ["CX264"]),
        swift("ZeroMQ", ["CLinux", "CZeroMQ"]),

        // What configuration files say.
        swift("Settings", ["CTOML", "JSON"]),

        // Domain: pure values, no I/O, no clock but the one passed in.
        swift("BusProtocol", ["JSON"]),
        swift("CaptureCore", ["BusProtocol", "JSON"]),

        // Media
        swift("CaptureLibrary", ["BusProtocol", "JSON", "LinuxIO"]),
        swift("Imaging", ["BusProtocol", "CaptureCore", "FFmpeg", "JSON", "TurboJPEG"]),
        swift(
            "CaptureSources",
            [
                "ALSA", "BusProtocol", "CaptureCore", "FFmpeg", "Imaging", "LinuxIO", "TurboJPEG",
                "Video4Linux", "X264",
            ]),
        swift("FrameRing", ["BusProtocol", "JSON", "LinuxIO"]),
        swift("MovieFile", ["BusProtocol", "CaptureCore", "FFmpeg", "Imaging", "LinuxIO", "TurboJPEG"]),
        swift("PhotoFile", ["BusProtocol", "CaptureCore", "EXIF", "FFmpeg", "Imaging", "JSON", "TIFF", "TurboJPEG"]),

        // Services
        swift("BusClient", ["BusProtocol", "FrameRing", "JSON", "LinuxIO", "Sodium", "ZeroMQ"]),
        swift("Doctor", ["BusProtocol", "JSON", "LinuxIO"]),
        swift("BusServer", ["BusProtocol", "JSON", "LinuxIO", "ZeroMQ", logging]),
        // What the processes that deliver frames share: those of devices, and those of rigs.
        swift(
            "Delivery", ["BusProtocol", "BusServer", "CaptureCore", "FrameRing", "JSON", "LinuxIO", "ZeroMQ", logging]),
        swift(
            "Matcher", ["BusProtocol", "BusServer", "CaptureCore", "Delivery", "JSON", "LinuxIO", "ZeroMQ", logging]),
        swift(
            "Coordinator",
            [
                "BusProtocol", "BusServer", "CaptureCore", "JSON", "LinuxIO", "Settings", "Sodium", "Udev", "ZeroMQ",
                logging,
            ]),
        .target(
            name: "Gateway",
            dependencies: [
                "BusProtocol", "BusServer", "CPage", "CaptureCore", "JSON", "LinuxIO", "Settings", "Sodium", "ZeroMQ",
                logging,
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ],
            // In CPage, which puts it into the program.
            exclude: ["Page"], swiftSettings: settings),
        swift(
            "Librarian", ["BusProtocol", "CaptureCore", "CaptureLibrary", "JSON", "LinuxIO", "MovieFile", "SQLite"]),
        swift(
            "Recorder",
            [
                "BusProtocol", "BusServer", "CaptureCore", "CaptureLibrary", "FFmpeg", "FrameRing", "Imaging", "JSON",
                "LinuxIO", "MovieFile", "ZeroMQ", logging,
            ]),
        swift(
            "Worker",
            [
                "BusProtocol", "BusServer", "CaptureCore", "CaptureLibrary", "CaptureSources", "Delivery", "FFmpeg",
                "FrameRing", "Imaging", "JSON", "LinuxIO", "PhotoFile", "ZeroMQ", logging,
            ]),

        // Executables: parse, build, run.
        swift("ServiceCommand", ["LinuxIO", arguments, logging]),
        program("camerabus", ["BusClient", "BusProtocol", "Doctor", "JSON", "LinuxIO", "ZeroMQ", arguments]),
        program("camerabus-gateway", ["BusServer", "Gateway", "LinuxIO", "ServiceCommand", arguments, logging]),
        program(
            "camerabus-librarian",
            ["BusProtocol", "CaptureCore", "JSON", "Librarian", "LinuxIO", "ServiceCommand", arguments]),
        program(
            "camerabus-matcher", ["BusServer", "Delivery", "LinuxIO", "Matcher", "ServiceCommand", arguments, logging]),
        program(
            "camerabus-recorder",
            [
                "BusProtocol", "BusServer", "CaptureCore", "JSON", "LinuxIO", "Recorder", "ServiceCommand", arguments,
                logging,
            ]),
        program(
            "camerabus-worker",
            [
                "BusServer", "CaptureCore", "CaptureSources", "Delivery", "JSON", "LinuxIO", "ServiceCommand", "Worker",
                arguments, logging,
            ]),
        program(
            "camerabusd",
            ["BusServer", "CaptureCore", "Coordinator", "ServiceCommand", "Settings", arguments, logging]),

        // Tests
        .target(
            name: "CameraBusTesting",
            dependencies: [
                "BusClient", "BusProtocol", "BusServer", "CaptureCore", "CaptureLibrary", "CaptureSources", "FrameRing",
                "JSON", "LinuxIO", "MovieFile", "TurboJPEG", "ZeroMQ",
            ],
            path: "Tests/CameraBusTesting", swiftSettings: settings),
        tests(
            "BusClientTests",
            ["BusClient", "BusProtocol", "CameraBusTesting", "FrameRing", "JSON", "LinuxIO", "ZeroMQ"]),
        tests(
            "BusServerTests", ["BusProtocol", "BusServer", "CameraBusTesting", "JSON", "LinuxIO", "ZeroMQ", logging]),
        tests("BusProtocolTests", ["BusProtocol", "JSON"]),
        tests("CaptureCoreTests", ["BusProtocol", "CaptureCore", "JSON"]),
        tests("CaptureLibraryTests", ["CameraBusTesting", "CaptureLibrary", "JSON", "LinuxIO"]),
        tests(
            "CaptureSourcesTests",
            [
                "ALSA", "BusProtocol", "CV4L2", "CaptureCore", "CaptureSources", "CameraBusTesting", "Imaging",
                "JSON", "LinuxIO", "Video4Linux",
            ]),
        tests(
            "CommandLineTests",
            ["BusClient", "BusProtocol", "CameraBusTesting", "Doctor", "JSON", "LinuxIO", "camerabus", arguments]),
        tests(
            "DeliveryTests",
            [
                "BusProtocol", "BusServer", "CameraBusTesting", "CaptureCore", "Delivery", "FrameRing", "JSON",
                "LinuxIO", "ZeroMQ",
            ]),
        tests("DoctorTests", ["CameraBusTesting", "Doctor", "JSON", "LinuxIO"]),
        tests("FrameRingTests", ["BusProtocol", "CLinux", "CameraBusTesting", "FrameRing", "JSON", "LinuxIO"]),
        tests(
            "GatewayTests",
            [
                "BusProtocol", "BusServer", "CameraBusTesting", "CaptureCore", "Gateway", "JSON", "LinuxIO", "ZeroMQ",
                logging,
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
            ]),
        tests("ImagingTests", ["BusProtocol", "CameraBusTesting", "CaptureCore", "Imaging", "JSON", "TurboJPEG"]),
        tests(
            "KernelTests",
            [
                "BusClient", "BusProtocol", "CameraBusTesting", "CaptureCore", "CaptureSources", "FrameRing", "Imaging",
                "JSON", "LinuxIO", "PhotoFile", "Video4Linux", "ZeroMQ",
            ]),
        tests(
            "LibrarianTests",
            [
                "BusProtocol", "CameraBusTesting", "CaptureCore", "CaptureLibrary", "JSON", "Librarian", "LinuxIO",
                "MovieFile", "SQLite", "camerabus-librarian",
            ]),
        tests(
            "MovieFileTests",
            ["BusProtocol", "CameraBusTesting", "CaptureCore", "FFmpeg", "Imaging", "LinuxIO", "MovieFile"]),
        tests(
            "PhotoFileTests",
            [
                "BusProtocol", "CameraBusTesting", "CaptureCore", "EXIF", "Imaging", "JSON", "LinuxIO", "PhotoFile",
                "TIFF", "TurboJPEG",
            ]),
        tests(
            "ProcessTests",
            [
                "BusClient", "BusProtocol", "BusServer", "CameraBusTesting", "CaptureCore", "FrameRing", "JSON",
                "LinuxIO", "ZeroMQ",
            ]),
        tests(
            "RecorderTests",
            [
                "BusProtocol", "CameraBusTesting", "CaptureCore", "CaptureLibrary", "FFmpeg", "FrameRing", "Imaging",
                "JSON",
                "LinuxIO", "MovieFile", "Recorder", "ZeroMQ", "camerabus-recorder", "camerabus-worker", logging,
            ]),
        tests("VectorTests", ["BusProtocol", "CameraBusTesting", "CaptureCore", "FrameRing", "JSON", "LinuxIO"]),
        tests(
            "WorkerTests",
            [
                "BusClient", "BusProtocol", "BusServer", "CV4L2", "CameraBusTesting", "CaptureCore", "CaptureLibrary",
                "CaptureSources", "Delivery", "FrameRing", "Imaging", "JSON", "LinuxIO", "Video4Linux", "Worker",
                "ZeroMQ", "camerabus-worker", logging,
            ]),
        tests(
            "WrapperTests",
            [
                "ALSA", "CameraBusTesting", "FFmpeg", "JSON", "LinuxIO", "SQLite", "Settings", "Sodium", "Udev",
                "ZeroMQ",
            ]),
    ],
    cxxLanguageStandard: .cxx17
)
