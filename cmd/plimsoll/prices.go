package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/report"
)

// priceOptions are the flags from which savings are worked out.
type priceOptions struct {
	cpu, memory, currency string
}

func (o *priceOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.cpu, "price-cpu", "", "price of a core for an hour, such as 0.0316; with it, and the next, savings are shown")
	f.StringVar(&o.memory, "price-memory", "", "price of a GiB for an hour, such as 0.0042")
	f.StringVar(&o.currency, "currency", "", "what stands beside amounts, such as $ or EUR")
}

func (o *priceOptions) parse() (report.Prices, error) {
	p := report.Prices{Currency: strings.TrimSpace(o.currency)}
	var errs []error
	price := func(flag, text string) *float64 {
		if text == "" {
			return nil
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			errs = append(errs, fmt.Errorf("%s: %q is not a price such as 0.0316", flag, text))
		}
		return &v
	}
	p.CPU, p.Memory = price("--price-cpu", o.cpu), price("--price-memory", o.memory)
	if p.CPU == nil && p.Memory == nil && p.Currency != "" {
		errs = append(errs, errors.New("--currency: there is nothing to pay without --price-cpu or --price-memory"))
	}
	return p, errors.Join(errs...)
}
