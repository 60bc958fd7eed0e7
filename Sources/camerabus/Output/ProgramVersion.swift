/// The version of this program, as `camerabus --version` and the doctor show it.
enum ProgramVersion {
    static let text = "0.1.0"
}
