package prometheus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/history"
)

const (
	sourceFailed      = v1alpha1.ReasonSourceFailed
	sourceUnreachable = v1alpha1.ReasonSourceUnreachable
)

// badDataByNumber is how VictoriaMetrics writes the type of an error: by its
// status.
const badDataByNumber v1.ErrorType = "400"

const wrongServerHint = "; check that the URL is that of a Prometheus-compatible server"

// failure is why a query gave nothing, with what is decided by: never the text.
type failure struct {
	reason v1alpha1.Reason
	// size is what may help.
	size remedy
	err  error
}

// remedy is how a smaller query may succeed where one failed.
type remedy int

const (
	// remedyNone: size is not the matter.
	remedyNone remedy = iota
	// remedySmaller: less time or fewer workloads.
	remedySmaller
	// remedyShorter: a shorter query, that is fewer workloads.
	remedyShorter
)

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

func (f *failure) fault() *history.Fault {
	return &history.Fault{Reason: f.reason, Err: f.err}
}

// severed reports whether every other query would fail alike, so that none
// should be sent.
func (f *failure) severed() bool {
	return f.reason == sourceUnreachable || f.reason == v1alpha1.ReasonSourceUnauthorized
}

// classify turns what the client library returns into a failure.
func classify(err error, ex exchange, where string) *failure {
	var apiErr *v1.Error
	if errors.As(err, &apiErr) {
		return classifyAnswer(apiErr, ex, where)
	}
	// The library's error repeats the address with the query in it.
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	f := &failure{reason: sourceUnreachable}
	switch {
	case errors.Is(err, errTooLong), errors.Is(err, errTooSlow) && !ex.silent:
		f.reason, f.size = v1alpha1.ReasonQueryTooExpensive, remedySmaller
	case untrusted(err):
		err = fmt.Errorf("%w; give the certificate of its authority as http.tls_config.ca_file", err)
	case notTLS(err):
		err = fmt.Errorf("%w; the server speaks plain HTTP here, so the URL starts with http://", err)
	case unconnected(err):
		err = fmt.Errorf("%w; check the URL, and that the server runs and can be reached from here", err)
	case connectionBroke(err):
		err = fmt.Errorf("the connection broke: %w", err)
	}
	f.err = fmt.Errorf("asking %s: %w", where, err)
	return f
}

func classifyAnswer(e *v1.Error, ex exchange, where string) *failure {
	f := &failure{reason: sourceFailed}
	status, hint := ex.status, ""
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.reason = v1alpha1.ReasonSourceUnauthorized
		hint = "; check the credentials"
	case status == http.StatusUnprocessableEntity,
		// Behind some proxies it comes as a bad request.
		status == http.StatusBadRequest && e.Type == v1.ErrExec,
		status == http.StatusRequestEntityTooLarge,
		status == http.StatusGatewayTimeout,
		status == http.StatusServiceUnavailable && errorType([]byte(e.Detail)) == v1.ErrTimeout:
		f.reason, f.size = v1alpha1.ReasonQueryTooExpensive, remedySmaller
	case status == http.StatusRequestURITooLong, status == http.StatusRequestHeaderFieldsTooLarge:
		f.size = remedyShorter
	case status == http.StatusBadRequest && (e.Type == v1.ErrBadData || e.Type == badDataByNumber):
		// Too many points, or a query that is wrong: only a smaller one tells.
		f.size = remedySmaller
	case status == http.StatusNotFound:
		hint = "; check that the URL is the base of the server's API, without /api/v1"
	case status/100 == 2:
		hint = wrongServerHint
	}
	if ex.redirected != "" {
		// Most redirects lose what a POST carries.
		hint = "; the question was redirected to " + ex.redirected + ": give that as the URL"
	}
	f.err = fmt.Errorf("asking %s: %s%s", where, describe(e, status), hint)
	return f
}

// describe is the status and the server's own words.
func describe(e *v1.Error, status int) string {
	words := e.Msg
	if e.Detail != "" {
		words = e.Detail
		if answer := errorText([]byte(e.Detail)); answer != "" {
			words = answer
		}
	}
	if status/100 == 2 {
		return "the answer is not what the API gives: " + firstLine(e.Msg)
	}
	text := fmt.Sprintf("HTTP status %d", status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	if words = firstLine(words); words != "" {
		text += ": " + words
	}
	return text
}

// firstLine bounds what a proxy's error page adds to a message.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return shorten.Bytes(s, 300)
}

// untrusted reports whether the server's certificate was not accepted.
func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

func notTLS(err error) bool {
	var header tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &header)
}

// unconnected reports whether no connection came about.
func unconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return (errors.As(err, &op) && op.Op == "dial") || errors.As(err, &dns)
}
