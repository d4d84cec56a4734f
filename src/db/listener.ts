import type postgres from "postgres";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { newClient } from "./new-client.ts";
import { reconnectDelayS } from "./reconnect-backoff.ts";
import type { ServerHistory } from "./server-history.ts";

interface Channel {
	readonly name: string;
	readonly onNotify: (payload: string) => void;
	readonly onListen: () => void;
	readonly heard: () => void;
}

/** A connection, from opening it until it is discarded. */
interface Hearing {
	readonly client: postgres.Sql;
	/** Pending until its server was checked; undefined from then on. */
	checking: Promise<void> | undefined;
	cancelProbe: () => void;
}

/** Interval of a probing query: without it, a dead connection looks like one without notifications. */
const PROBE_MS = 500;
/** Time to answer a probe, after which the connection is discarded: with PROBE_MS, within 2 s. */
const ANSWER_MS_MAX = 1_500;
/** Time to open a connection, after which it is discarded. */
const CONNECT_MS_MAX = 5_000;

/** Receives notifications (NOTIFY) on its own connection. */
export function createListener(
	deps: { clock: Clock; log: Log },
	options: { url: string; applicationName: string; history?: ServerHistory | undefined },
) {
	const { clock, log } = deps;
	const { history } = options;
	const channels: Channel[] = [];
	let present: Hearing | undefined;
	let cancelAgain = () => {};
	let failures = 0;
	let ended = false;

	const late = () => new Error("the listening connection did not answer in time");
	const inTime = <T>(answer: PromiseLike<T>, ms: number) => withDeadline(clock, answer, ms, late);

	function connect(): void {
		const hearing: Hearing = {
			client: newClient(options.url, {
				connect_timeout: CONNECT_MS_MAX / 1_000,
				connection: { application_name: options.applicationName },
				onclose: () => giveUp(hearing, new Error("the listening connection was closed")),
				// The driver's `listen` uses this option, but its types lack it.
				...{ onnotify: tell },
			}),
			checking: undefined,
			cancelProbe: () => {},
		};
		present = hearing;
		hearing.checking = history?.check((text) => inTime(hearing.client.unsafe(text), CONNECT_MS_MAX));
		subscribe(hearing, [...channels]).then(
			() => probeSoon(hearing),
			(error) => giveUp(hearing, error),
		);
	}

	function tell(name: string, payload: string): void {
		for (const channel of channels) if (channel.name === name) channel.onNotify(payload);
	}

	async function subscribe(hearing: Hearing, wanted: readonly Channel[]): Promise<void> {
		const { client, checking } = hearing;
		if (checking !== undefined) {
			await checking;
			hearing.checking = undefined;
		}
		for (const { name } of wanted) await inTime(client`listen ${client(name)}`, CONNECT_MS_MAX);
		for (const { onListen, heard } of wanted) {
			onListen();
			heard();
		}
	}

	function probeSoon(hearing: Hearing): void {
		if (hearing !== present) return;
		failures = 0;
		hearing.cancelProbe = clock.after(PROBE_MS, () => {
			inTime(hearing.client`select 1`, ANSWER_MS_MAX).then(
				() => probeSoon(hearing),
				(error) => giveUp(hearing, error),
			);
		});
	}

	history?.onMove(() => {
		if (present && present.checking === undefined) giveUp(present, new Error("the database is on another server"));
	});

	function giveUp(hearing: Hearing, error: unknown): void {
		if (hearing !== present) return;
		present = undefined;
		hearing.cancelProbe();
		if (!ended) log.debug("the connection for notifications is opened again", { error });
		drop(hearing);
		if (ended) return;
		cancelAgain = clock.after(reconnectDelayS(failures) * 1_000, connect);
		failures += 1;
	}

	function drop({ client }: Hearing): void {
		client.end({ timeout: 0 }).catch((error) => log.debug("closing a silent database connection failed", { error }));
	}

	return {
		/**
		 * Resolves once channel `name` is subscribed. Calls `onListen` then and after each reconnect: notifications in
		 * between are lost, so the caller must catch up.
		 */
		async listen(name: string, onNotify: (payload: string) => void, onListen: () => void): Promise<void> {
			const { promise, resolve } = Promise.withResolvers<void>();
			const channel = { name, onNotify, onListen, heard: resolve };
			channels.push(channel);
			if (present) subscribe(present, [channel]).catch((error) => present && giveUp(present, error));
			else if (channels.length === 1) connect();
			await promise;
		},
		async end() {
			ended = true;
			cancelAgain();
			const last = present;
			present = undefined;
			last?.cancelProbe();
			await last?.client.end({ timeout: 1 });
		},
	};
}
