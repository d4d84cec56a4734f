import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { CONTROL_CHANNEL } from "../../src/cluster/control-log.ts";
import { waitUntilApplied } from "../../src/cluster/fence.ts";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import { createListener } from "../../src/db/listener.ts";
import { appendControl, entryAt, joinTestInstance } from "../cluster/fixture.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { createManualClock, type ManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

/** Milliseconds after which `listener.ts` tests an idle connection, and drops it if it does not answer. */
const PROBE_MS = 500;
const ANSWER_MS_MAX = 1_500;
const NEVER_MS = 1_000_000_000;

const server = await withDatabase();
const { proxy, url } = withDatabaseProxy(server.url);
const options = { url, applicationName: "listener test" };

async function hearing(channel: string, clock = systemClock) {
	const listener = createListener({ clock, log: silentLog }, options);
	atEnd(() => listener.end());
	const heard: string[] = [];
	let listens = 0;
	await listener.listen(
		channel,
		(payload) => heard.push(payload),
		() => {
			listens += 1;
		},
	);
	return {
		listener,
		listens: () => listens,
		async hears(word: string) {
			await server.sql`select pg_notify(${channel}, ${word})`;
			await waitFor(() => heard.includes(word), `${word} to be heard`);
		},
	};
}

/** Advances the clock until the listener has reconnected, because the pause before a retry is partly random. */
const renewed = (clock: ManualClock, listens: () => number) =>
	waitFor(() => {
		clock.advance(5);
		return listens() === 2;
	}, "the subscription to be renewed");

test("the listener subscribes again after its connection broke, and reports it", async () => {
	const channel = await hearing("cut_channel");
	expect(channel.listens()).toBe(1);
	await channel.hears("one");
	proxy.reset();
	await waitFor(() => channel.listens() === 2, "the subscription to be renewed");
	await channel.hears("two");
});

test("the listener replaces a connection silent for 2 s, with all channels", async () => {
	const clock = createManualClock();
	const channel = await hearing("silent_channel", clock);
	let others = 0;
	await channel.listener.listen(
		"other_channel",
		() => {
			others += 1;
		},
		() => {},
	);
	await channel.hears("one");
	const before = proxy.accepted();
	proxy.freezeExisting();
	clock.advance(PROBE_MS);
	clock.advance(ANSWER_MS_MAX - 1);
	expect(channel.listens()).toBe(1);
	expect(proxy.accepted()).toBe(before);
	clock.advance(1);
	await renewed(clock, channel.listens);
	await channel.hears("two");
	await server.sql`select pg_notify('other_channel', '')`;
	await waitFor(() => others === 1, "the other channel to be heard");
});

test("the listener keeps a connection that still answers", async () => {
	const clock = createManualClock();
	const channel = await hearing("quiet_channel", clock);
	const before = proxy.accepted();
	for (let probes = 0; probes < 5; probes++) {
		const asked = clock.pending();
		clock.advance(PROBE_MS);
		await waitFor(() => clock.pending() === asked, "the probe to be answered and the next one to be set");
	}
	expect(channel.listens()).toBe(1);
	expect(proxy.accepted()).toBe(before);
});

test("an instance receives revocations again after its silent listener was replaced", async () => {
	const db = server;
	// This instance sends no heartbeats, so it applies only entries that are announced to it.
	const member = await joinTestInstance(createPgHeartbeatStore(db.liveness), "hears", { heartbeatMs: NEVER_MS });
	await member.heartbeat.goLive();
	atEnd(() => member.heartbeat.stop());
	const clock = createManualClock();
	const listener = createListener({ clock, log: silentLog }, options);
	atEnd(() => listener.end());
	let listens = 0;
	const sync = () => void member.heartbeat.sync();
	await listener.listen(CONTROL_CHANNEL, sync, () => {
		listens += 1;
		sync();
	});
	const revoke = () => appendControl(db.statements, "account", "what is taken away", {});
	const isEverywhere = async (seq: number) => {
		const fence = createPgFenceStore(db.liveness);
		const { effective } = await waitUntilApplied({ store: fence, clock: systemClock }, await entryAt(db.sql, seq), {
			deadlineMs: 20_000,
			graceMs: 1_000,
		});
		return effective;
	};
	expect(await isEverywhere(await revoke())).toBe(true);
	proxy.freezeExisting();
	const missed = await revoke();
	clock.advance(PROBE_MS);
	clock.advance(ANSWER_MS_MAX);
	await renewed(clock, () => listens);
	expect(await isEverywhere(missed)).toBe(true);
	expect(await isEverywhere(await revoke())).toBe(true);
});
