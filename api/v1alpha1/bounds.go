package v1alpha1

import (
	"slices"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
)

// Bounds of a recommendation's status, as the markers on the types have them.
const (
	maxRecommended = 128
	maxOOMKills    = 256
	maxFloors      = 128
	maxSteps       = 32
	maxReasons     = 32
	maxAdvice      = 8
	maxEvidence    = 8

	maxText         = 512 // notes, advice and messages
	maxEvidenceText = 256
	maxSummary      = 253
)

// Fit cuts what the API server would refuse for its size, so that a long text
// never keeps a recommendation from being published: texts at their end, which
// becomes "…", and lists at their end, except for derivations and kills, of
// which the last are kept. What it keeps it leaves as it is.
func (s *VerticalRecommendationStatus) Fit() {
	s.Summary.CPU = shorten.Characters(s.Summary.CPU, maxSummary)
	s.Summary.Memory = shorten.Characters(s.Summary.Memory, maxSummary)
	s.Containers = first(s.Containers, maxRecommended)
	s.OOMKills = last(s.OOMKills, maxOOMKills)
	s.Floors = last(s.Floors, maxFloors)
	for i := range s.Containers {
		s.Containers[i].fit()
	}
}

func (c *ContainerRecommendation) fit() {
	c.Derivation = last(c.Derivation, maxSteps)
	for i := range c.Derivation {
		c.Derivation[i].Note = shorten.Characters(c.Derivation[i].Note, maxText)
	}
	c.Reasons = first(c.Reasons, maxReasons)
	c.Advice = cutAll(first(c.Advice, maxAdvice), maxText)
	c.Runtime.Evidence = cutAll(first(c.Runtime.Evidence, maxEvidence), maxEvidenceText)
	for i := range c.Withheld {
		c.Withheld[i].Message = shorten.Characters(c.Withheld[i].Message, maxText)
	}
}

// cutAll leaves the list itself as it is: others may hold it.
func cutAll(texts []string, most int) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		texts[i] = shorten.Characters(texts[i], most)
	}
	return texts
}

func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

func last[T any](list []T, most int) []T { return list[max(len(list)-most, 0):] }
