package metricsserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/klauspost/compress/zstd"

	"github.com/plimsoll-dev/plimsoll/history"
)

// A shard is a version and then, for each workload, its length as a varint and
// what history.Usage stores; all of it compressed by zstd.
const shardVersion = 1

// mostDecoded bounds what a damaged shard can make us allocate; whole ones are a
// few megabytes.
const mostDecoded = 64 << 20

type shard struct {
	content, compressed []byte
}

// The codecs are safe for concurrent use, and take seconds of CPU to warm up
// where each shard has its own.
var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)))
	decoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDecoded)))
)

// must is for options that are constant.
func must[T any](codec T, err error) T {
	if err != nil {
		panic(err)
	}
	return codec
}

func (s *shard) add(record []byte) {
	if len(s.content) == 0 {
		s.content = append(s.content, shardVersion)
	}
	s.content = binary.AppendUvarint(s.content, uint64(len(record)))
	s.content = append(s.content, record...)
}

func (s *shard) compress() { s.compressed = encoder.EncodeAll(s.content, nil) }

func (s *shard) sum() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(s.content) // A hash takes everything.
	return h.Sum64()
}

// decodeShard reads all workloads of a shard, or none where it is damaged.
func decodeShard(compressed []byte) ([]history.Usage, error) {
	content, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing it: %w", err)
	}
	if len(content) == 0 {
		return nil, nil // Not every shard has workloads.
	}
	if content[0] != shardVersion {
		return nil, fmt.Errorf("it is of version %d, and this program reads version %d", content[0], shardVersion)
	}
	var all []history.Usage
	for left := content[1:]; len(left) > 0; {
		length, size := binary.Uvarint(left)
		if size <= 0 || length > uint64(len(left)-size) {
			return nil, errors.New("it ends in the middle of a workload")
		}
		var u history.Usage
		if err := u.UnmarshalBinary(left[size : size+int(length)]); err != nil {
			return nil, err
		}
		all = append(all, u)
		left = left[size+int(length):]
	}
	return all, nil
}
