// Package wire is what the load program and its callers say to each other:
// environment variables in, JSON over HTTP in and out. It needs the standard
// library only, since the program is built from it.
package wire

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Port is where the program listens unless LOAD_PORT says otherwise.
const Port = 8080

// Paths the program serves.
const (
	// ReportPath answers GET with a Report.
	ReportPath = "/report"
	// ChangePath takes a POST with a Change and answers with a Report.
	ChangePath = "/change"
	// ReadyPath answers 200 when the program is ready, 503 before.
	ReadyPath = "/ready"
	// ExitPath takes a POST and ends the program with the code in ?code=.
	ExitPath = "/exit"
)

// Settings say what the program does from its start. The zero value does
// nothing, is ready at once and stops when asked.
type Settings struct {
	// CPUCores is how much CPU the program wants, in cores, over all workers.
	CPUCores float64
	// Workers is how many goroutines share the work. Zero means one for each
	// core wanted, rounded up.
	Workers int
	// MemoryBytes is how much memory is held, in touched pages.
	MemoryBytes int64
	// LeakBytesPerSecond is added to MemoryBytes each second.
	LeakBytesPerSecond int64
	// FileBytes is written to a file, and stays in the page cache.
	FileBytes int64
	// ReadyAfter is how long the program takes to become ready.
	ReadyAfter time.Duration
	// IgnoreTerm makes the program ignore SIGTERM, so that only SIGKILL ends it.
	IgnoreTerm bool
	// Port replaces the default port. Zero means Port.
	Port int
}

// Names of the environment variables.
const (
	envCPUCores   = "LOAD_CPU_CORES"
	envWorkers    = "LOAD_WORKERS"
	envMemory     = "LOAD_MEMORY_BYTES"
	envLeak       = "LOAD_LEAK_BYTES_PER_SECOND"
	envFile       = "LOAD_FILE_BYTES"
	envReadyAfter = "LOAD_READY_AFTER"
	envIgnoreTerm = "LOAD_IGNORE_TERM"
	envPort       = "LOAD_PORT"
)

// Env returns the variables that make FromEnv return the same settings; what is
// zero is left out.
func (s Settings) Env() map[string]string {
	env := map[string]string{}
	put(env, envCPUCores, s.CPUCores)
	put(env, envWorkers, s.Workers)
	put(env, envMemory, s.MemoryBytes)
	put(env, envLeak, s.LeakBytesPerSecond)
	put(env, envFile, s.FileBytes)
	put(env, envReadyAfter, s.ReadyAfter)
	put(env, envIgnoreTerm, s.IgnoreTerm)
	put(env, envPort, s.Port)
	return env
}

func put[T comparable](env map[string]string, name string, value T) {
	var zero T
	if value != zero {
		env[name] = fmt.Sprint(value)
	}
}

// FromEnv reads settings through getenv. The error names every variable that is
// wrong.
func FromEnv(getenv func(string) string) (Settings, error) {
	var s Settings
	err := errors.Join(
		read(getenv, envCPUCores, &s.CPUCores, func(v string) (float64, error) { return strconv.ParseFloat(v, 64) }),
		read(getenv, envWorkers, &s.Workers, strconv.Atoi),
		read(getenv, envMemory, &s.MemoryBytes, parseBytes),
		read(getenv, envLeak, &s.LeakBytesPerSecond, parseBytes),
		read(getenv, envFile, &s.FileBytes, parseBytes),
		read(getenv, envReadyAfter, &s.ReadyAfter, time.ParseDuration),
		read(getenv, envIgnoreTerm, &s.IgnoreTerm, strconv.ParseBool),
		read(getenv, envPort, &s.Port, strconv.Atoi),
	)
	if s.Port == 0 {
		s.Port = Port
	}
	return s, err
}

func read[T any](getenv func(string) string, name string, into *T, parse func(string) (T, error)) error {
	value := getenv(name)
	if value == "" {
		return nil
	}
	parsed, err := parse(value)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	*into = parsed
	return nil
}

func parseBytes(value string) (int64, error) { return strconv.ParseInt(value, 10, 64) }
