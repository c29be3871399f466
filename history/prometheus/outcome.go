package prometheus

import (
	"errors"
	"net/http"
)

// Outcome is what became of a query that was sent, in one word.
type Outcome string

// The outcomes.
const (
	OutcomeAnswered Outcome = "Answered"
	// OutcomeRefused is a status of 4xx, or a redirect that is not followed.
	OutcomeRefused    Outcome = "Refused"
	OutcomeOverloaded Outcome = "Overloaded" // 429
	// OutcomeServerError is a status of 5xx.
	OutcomeServerError Outcome = "ServerError"
	// OutcomeTooSlow means that no whole answer came within Settings.Timeout.
	OutcomeTooSlow Outcome = "TooSlow"
	// OutcomeUnreachable means that there was no connection, or that it broke.
	OutcomeUnreachable Outcome = "Unreachable"
)

func (a attempt) outcome() Outcome {
	switch status := a.status(); {
	case status == 0 && errors.Is(a.err, errTooSlow):
		return OutcomeTooSlow
	case status == 0:
		return OutcomeUnreachable
	case status == http.StatusTooManyRequests:
		return OutcomeOverloaded
	case status >= 500:
		return OutcomeServerError
	case status >= 300:
		return OutcomeRefused
	default:
		return OutcomeAnswered
	}
}
