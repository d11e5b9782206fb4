// SPDX-License-Identifier: Apache-2.0
// Rotation symmetry: if rank r + g does what rank r does with all peers g further on, and the cluster looks the same from both,
// then both do everything at the same times, and the first g ranks stand for all. Both are verified here, not assumed: plans by
// comparing loops without running them, clusters by comparing who shares what.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "plan/plan.h"
#include "plan/simulator/cluster.h"
#include "plan/simulator/lengths.h"

namespace shoal::plan {

using PlanOf = std::function<Plan(Rank)>;

// Whether `other`, of the rank `shift` above, is `plan` with peers moved by `shift`. False also where it takes running the loops
// to see it, and for plans with shared slots, whose readers are served in the order of ranks. Chunk numbers do not count: their
// lengths are equal.
bool is_shifted(const Plan& plan, const Plan& other, std::int32_t shift);

// Whether moving every rank by `period`, a divisor of the world, keeps who shares a host, a NIC, a leaf, a core; and those who
// share anything that messages queue for are different ranks modulo `period`.
bool looks_the_same(const Cluster& cluster, const std::vector<Place>& places, std::int32_t period);

// The least period that passes for both; the world's size if there is none.
std::int32_t rotation_period(std::span<const Plan> plans, const Cluster& cluster, const std::vector<Place>& places);
// The same without holding all plans: builds each rank's plan at most once a divisor of the
// world, and stops at the first rank that differs.
std::int32_t rotation_period(World world, const PlanOf& plan_of, const Cluster& cluster, const std::vector<Place>& places);

}  // namespace shoal::plan
