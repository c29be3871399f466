package main

import (
	"fmt"
	"os"
	"syscall"
)

// chunkBytes is the piece in which memory is taken and given back.
const chunkBytes = 1 << 20

// memory is held outside the Go heap: what is let go returns to the kernel at
// once, and the garbage collector does not add to it.
type memory struct {
	chunks [][]byte
	bytes  int64
}

// resize holds this many bytes in touched pages from now on.
func (m *memory) resize(bytes int64) error {
	bytes = max(bytes, 0)
	for m.bytes > bytes {
		last := m.chunks[len(m.chunks)-1]
		if err := syscall.Munmap(last); err != nil {
			return fmt.Errorf("giving memory back: %w", err)
		}
		m.chunks = m.chunks[:len(m.chunks)-1]
		m.bytes -= int64(len(last))
	}
	for m.bytes < bytes {
		chunk, err := touched(int(min(chunkBytes, bytes-m.bytes)))
		if err != nil {
			return err
		}
		m.chunks = append(m.chunks, chunk)
		m.bytes += int64(len(chunk))
	}
	return nil
}

func touched(bytes int) ([]byte, error) {
	chunk, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("taking memory: %w", err)
	}
	for i := 0; i < bytes; i += os.Getpagesize() {
		chunk[i] = 1
	}
	return chunk, nil
}
