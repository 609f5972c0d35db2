"""What travels between a host and its child: frames, two sealed channels, keys, and the child's start (design §8).

Reading order: `ready` and `messages` (what is said), `frames` (bytes to bodies), `cbor` (the strict format), `sealed`
(envelope and order of checks), `control` and `events` (the two channels), `parse` (payload to message); then `keys`,
`environment`, `spawn`, `parent`, `process` (the operating system's part); `strays` and `sweep` (the end of what a child
leaves), `stopped`, `crowded`, `weight` (how it is, asked of the kernel); `errors` throughout. The first seven touch no
descriptor.
Import the file you need: both channels have a `Sender` and a `Receiver`, and the child needn't load the host's half.
"""
