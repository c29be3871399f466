package v1alpha1

import (
	"slices"
	"unicode/utf8"
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
	s.Summary.CPU = cut(s.Summary.CPU, maxSummary)
	s.Summary.Memory = cut(s.Summary.Memory, maxSummary)
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
		c.Derivation[i].Note = cut(c.Derivation[i].Note, maxText)
	}
	c.Reasons = first(c.Reasons, maxReasons)
	c.Advice = cutAll(first(c.Advice, maxAdvice), maxText)
	c.Runtime.Evidence = cutAll(first(c.Runtime.Evidence, maxEvidence), maxEvidenceText)
	for i := range c.Withheld {
		c.Withheld[i].Message = cut(c.Withheld[i].Message, maxText)
	}
}

// cutAll leaves the list itself as it is: others may hold it.
func cutAll(texts []string, most int) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		texts[i] = cut(texts[i], most)
	}
	return texts
}

// cut shortens a text to as many characters, as the API server counts them.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

func last[T any](list []T, most int) []T { return list[max(len(list)-most, 0):] }
