package retry

import (
	"errors"
	"testing"
	"time"
)

func TestForEndsWithTheFirstSuccess(t *testing.T) {
	calls := 0
	err := For(time.Hour, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("For gave %v after %d calls, want success after 3", err, calls)
	}
}

func TestForGivesTheLastError(t *testing.T) {
	want := errors.New("never")
	if err := For(0, func() error { return want }); !errors.Is(err, want) {
		t.Errorf("For gave %v, want %v", err, want)
	}
}
