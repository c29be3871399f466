package supervisor

// The two processes talk in JSON values, requests on the supervisor's standard
// input and replies on descriptor 3. Each request gets one reply, in order; a
// process's end is told unasked.

// envConfig carries the Config as JSON, and by being set makes the executable a
// supervisor.
const envConfig = "PLIMSOLL_TEST_SUPERVISOR"

// replyFD is the supervisor's descriptor for replies, the first of ExtraFiles.
const replyFD = 3

type request struct {
	Start *Process `json:",omitempty"`
	// Signal sends a signal to the named process.
	Signal *signalRequest `json:",omitempty"`
	// Forward leads an address to another, until the supervisor ends.
	Forward *Forward `json:",omitempty"`
	// Detach makes the supervisor outlive the process that started it; it then
	// ends on SIGTERM only.
	Detach bool `json:",omitempty"`
	// Shutdown takes everything down. The supervisor exits after the reply.
	Shutdown bool `json:",omitempty"`
}

type signalRequest struct {
	Name   string
	Number int
}

type reply struct {
	// Exit, where set, is not a reply but the end of a process.
	Exit  *exit  `json:",omitempty"`
	Error string `json:",omitempty"`
}

type exit struct {
	Name   string
	Status string
}
