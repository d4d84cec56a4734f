import type { Clock } from "../../src/base/clock.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { ControlEntry } from "../../src/cluster/control-log.ts";
import type { Gate } from "../../src/cluster/gate.ts";
import { createGate } from "../../src/cluster/gate.ts";
import type { Heartbeat, HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { startHeartbeat } from "../../src/cluster/heartbeat.ts";

export interface TestMember {
	readonly heartbeat: Heartbeat & { goLive(): Promise<void> };
	readonly gate: Gate;
	readonly applied: ControlEntry[];
	readonly fenced: Promise<void>;
}

export async function joinTestInstance(
	store: HeartbeatStore,
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
	const heartbeat = await startHeartbeat(
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
	return { heartbeat, gate, applied, fenced: fenced.promise };
}
