package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// Prices are what resources cost. Nil is unknown, which is not for nothing.
type Prices struct {
	// CPU is of a core for an hour, Memory of a GiB for an hour.
	CPU, Memory *float64
	// Currency is written beside amounts; empty writes none.
	Currency string
}

// HoursPerMonth is what clouds count for a month: a twelfth of a year.
const HoursPerMonth = 730

// Savings are what the targets save in a month; negative is what they cost.
// Containers without a request are no part of them.
type Savings struct {
	PerMonth string `json:"perMonth"`
	// CPU and Memory are null where that price is not known.
	CPU      *string `json:"cpu"`
	Memory   *string `json:"memory"`
	Currency string  `json:"currency"`
	Hours    int     `json:"hours"`
	// CPUPerCoreHour and MemoryPerGiBHour are the prices.
	CPUPerCoreHour   *string `json:"cpuPerCoreHour"`
	MemoryPerGiBHour *string `json:"memoryPerGiBHour"`
}

// of is the price of a core or a byte in a month; false where it is unknown.
func (p Prices) of(r corev1.ResourceName) (perMonth float64, ok bool) {
	price, per := p.CPU, 1.0
	if r == corev1.ResourceMemory {
		price, per = p.Memory, 1<<30
	}
	if price == nil {
		return 0, false
	}
	return *price * HoursPerMonth / per, true
}

// Price adds what the targets save to the list; without any price nothing is
// said.
func (l *List) Price(p Prices) {
	if p.CPU == nil && p.Memory == nil {
		return
	}
	total, each := 0.0, map[corev1.ResourceName]float64{}
	for n := range l.Items {
		i := &l.Items[n]
		saved, priced := 0.0, false
		for _, r := range sizing.Resources {
			delta, ok := number(*i.Delta.Total.For(r))
			if price, known := p.of(r); ok && known {
				saved, priced = saved-delta*price, true
				each[r] -= delta * price
			}
		}
		if priced {
			i.SavingPerMonth = money(saved)
		}
		total += saved
	}
	s := &Savings{PerMonth: *money(total), Currency: p.Currency, Hours: HoursPerMonth}
	if p.CPU != nil {
		s.CPU, s.CPUPerCoreHour = money(each[corev1.ResourceCPU]), decimal(*p.CPU)
	}
	if p.Memory != nil {
		s.Memory, s.MemoryPerGiBHour = money(each[corev1.ResourceMemory]), decimal(*p.Memory)
	}
	l.Summary.Savings = s
}

// money is an amount to a hundredth; what rounds to nothing has no sign.
func money(v float64) *string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	if text == "-0.00" {
		text = "0.00"
	}
	return &text
}

func decimal(v float64) *string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	return &text
}

// String is one sentence.
func (s *Savings) String() string {
	return fmt.Sprintf("%s a month (%d h): %s", s.headline(), s.Hours, strings.Join(s.parts(), ", "))
}

// parts are what each resource saves.
func (s *Savings) parts() []string {
	var parts []string
	if s.CPU != nil {
		parts = append(parts, "CPU "+s.amount(*s.CPU))
	}
	if s.Memory != nil {
		parts = append(parts, "memory "+s.amount(*s.Memory))
	}
	return parts
}

// headline is what is saved, or what it costs.
func (s *Savings) headline() string {
	if cost, ok := strings.CutPrefix(s.PerMonth, "-"); ok {
		return "Costs " + s.amount(cost) + " more"
	}
	return "Saves " + s.amount(s.PerMonth)
}

// amount is an amount with its currency, such as $1.50, EUR 1.50 or -$1.50.
func (s *Savings) amount(text string) string {
	size, negative := strings.CutPrefix(text, "-")
	if negative {
		return "-" + s.prefix() + size
	}
	return s.prefix() + size
}

// prefix is what stands before an amount: a sign at once, a word with a space.
func (s *Savings) prefix() string {
	if utf8.RuneCountInString(s.Currency) > 1 {
		return s.Currency + " "
	}
	return s.Currency
}
