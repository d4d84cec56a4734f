import type { Clock } from "../../src/base/clock.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { ControlEntry } from "../../src/cluster/control-log.ts";
import type { Gate } from "../../src/cluster/gate.ts";
import { createGate } from "../../src/cluster/gate.ts";
import type { Member, MemberStore } from "../../src/cluster/member.ts";
import { joinCluster } from "../../src/cluster/member.ts";

export interface TestMember {
	readonly member: Member & { goLive(): Promise<void> };
	readonly gate: Gate;
	readonly applied: ControlEntry[];
	readonly fenced: Promise<void>;
}

export async function joinTestMember(
	store: MemberStore,
	id: string,
	options: {
		ttlMs?: number;
		marginMs?: number;
		heartbeatMs?: number;
		clock?: Clock;
		apply?: (entry: ControlEntry) => void | Promise<void>;
	} = {},
): Promise<TestMember> {
	const clock = options.clock ?? systemClock;
	const gate = createGate({ clock });
	const applied: ControlEntry[] = [];
	const fenced = Promise.withResolvers<void>();
	const member = await joinCluster(
		{
			store,
			clock,
			log: silentLog,
			gate,
			apply: async (entry) => {
				applied.push(entry);
				await options.apply?.(entry);
			},
			onFenced: () => fenced.resolve(),
		},
		{ id, ttlMs: options.ttlMs ?? 60_000, marginMs: options.marginMs ?? 100, heartbeatMs: options.heartbeatMs ?? 20 },
	);
	return { member, gate, applied, fenced: fenced.promise };
}
