//go:build linux

package orphan

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// asParent makes the test binary start a command and be killed.
const asParent = "PLIMSOLL_TEST_AS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) == "" {
		os.Exit(m.Run())
	}
	child := exec.Command("sleep", "600")
	child.Stdout = os.Stdout
	Prevent(child)
	if err := child.Start(); err != nil {
		panic(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		panic(err)
	}
	_ = self.Kill() // It is the end.
	select {}
}

func TestACommandEndsWithAProcessThatIsKilled(t *testing.T) {
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=1")
	parent.Stdout = write
	if err := parent.Run(); err == nil {
		t.Error("the parent was not killed")
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	// The pipe has its end when nobody holds it open any longer.
	if _, err := io.ReadAll(out); err != nil {
		t.Error(err)
	}
}
