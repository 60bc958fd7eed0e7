/// Whether who opens the microphones may: both where their sound comes from, and the controls of their card.
struct SoundPermissionCheck: Check {
    let id = "sound-permission"

    private let door = NodeAccess(
        prefix: "sound", subsystem: "sound", group: "audio",
        installingRule:
            "printf 'SUBSYSTEM==\"sound\", GROUP=\"audio\", MODE=\"0660\"\\n' | sudo tee "
            + "/etc/udev/rules.d/71-camerabus-sound.rules && sudo udevadm control --reload && "
            + "sudo udevadm trigger --subsystem-match=sound")

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.soundCards.isEmpty else { return .skipped("there is no microphone") }
        // What is wrong with one of a card's nodes is wrong with all.
        let findings = facts.soundCards.compactMap { card in
            card.nodes.lazy.compactMap { door.finding($0, facts) }.first
        }
        let count = facts.soundCards.count
        return .of(
            findings,
            healthy:
                "\(facts.opener.name) may record from \(count == 1 ? "the sound card" : "all \(count) sound cards")")
    }
}
