// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the cards of a run show beside each other, for C2, D2 and D3. A card that waits inside a
// collective has its engine on all the time and a few SMs with it: busy to nvidia-smi, and not at
// work. Pure.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

// Cards wait inside a kernel as they would inside a collective, for a minute and more.
bool CardsWait(const features::JobFeatures& f);
// A card computes, whatever the text says: its SMs come and go with the work.
bool ACardWorks(const features::JobFeatures& f);
// Adds what the cards show to a standstill that something else tells of, and names the ranks whose
// cards have nothing to do, where few have and none is named yet.
void AddWaitingCards(const features::JobFeatures& f, Finding& finding);

// D2: the cards of all ranks mostly wait, and collectives or steps go on.
Finding WaitingOnTheFabric(const features::JobFeatures& f);

// What NCCL moves its bytes with is known to be slow, and no counter of the GPUs says what that
// costs: that the run goes on does not say that it goes on as fast as it should.
void CapByUnmeasuredTransport(const features::JobFeatures& f, Finding& finding);

// D3: one card works while its peers wait inside collectives, or has gaps while they do.
Finding OddCard(const features::JobFeatures& f);
// The same by how much less than its peers it waits, over a hundred steps: features/leads.cc.
Finding LastToArrive(const features::JobFeatures& f);
// Whether a rank arrives last to the collectives, and costs its peers at least `lead` of the time.
bool StandsOut(const features::JobFeatures& f, double lead);
// X17: the GPUs of some stages or experts work more than those of others, as long as the run goes.
Finding UnevenWork(const features::JobFeatures& f);
// Why not; empty: the cards do not tell.
FieldValues CardsAlike(const features::JobFeatures& f, features::EvidenceRef& evidence);

}  // namespace rankscope::families
