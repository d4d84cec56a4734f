import type postgres from "postgres";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { OpenClient } from "./connection.ts";
import { createConnector } from "./new-client.ts";
import { reconnectDelayS } from "./reconnect-backoff.ts";
import type { ServerHistory } from "./server-history.ts";

interface Channel {
	readonly name: string;
	readonly onNotify: (payload: string) => void;
	readonly onListen: () => void;
	readonly heard: () => void;
}

/** A connection that listens, from its opening until it is closed. */
interface Hearing {
	readonly link: OpenClient;
	readonly client: Promise<postgres.Sql>;
	/** True once the connection's server was checked, see `server-history.ts`. */
	isChecked: boolean;
	cancelProbe: () => void;
}

/** Milliseconds between test queries. Without them, a dead connection looks like one without notifications. */
const PROBE_MS = 500;
/** Milliseconds without answer to a test query after which the connection is replaced: with PROBE_MS, within 2 s. */
const ANSWER_MS_MAX = 1_500;
/** Milliseconds for opening a connection, after which another is opened. */
const CONNECT_MS_MAX = 5_000;

/** Receives notifications (NOTIFY) on a connection of its own, which it reopens. */
export function createListener(
	{ clock, log }: { clock: Clock; log: Log },
	options: { url: string; applicationName: string; history?: ServerHistory | undefined },
) {
	const { history } = options;
	const open = createConnector(options.url, { application_name: options.applicationName }, CONNECT_MS_MAX / 1_000);
	const channels: Channel[] = [];
	let present: Hearing | undefined;
	let cancelAgain = () => {};
	let failures = 0;
	let ended = false;

	const late = () => new Error("the listening connection did not answer in time");
	const inTime = <T>(answer: PromiseLike<T>, ms: number) => withDeadline(clock, answer, ms, late);

	function connect(): void {
		const link = open({
			onclose: () => giveUp(hearing, new Error("the listening connection was closed")),
			onnotify: tell,
		});
		const client = checked(link);
		const hearing: Hearing = { link, client, isChecked: false, cancelProbe: () => {} };
		present = hearing;
		client.then(
			() => (hearing.isChecked = true),
			() => {
				// Handled elsewhere: the caller of `subscribe` gets this error too.
			},
		);
		subscribe(hearing, [...channels]).then(
			() => probeSoon(hearing),
			(error) => giveUp(hearing, error),
		);
	}

	async function checked(link: OpenClient): Promise<postgres.Sql> {
		const client = await link.ready;
		await history?.check((text) => inTime(client.unsafe(text), CONNECT_MS_MAX));
		return client;
	}

	function tell(name: string, payload: string): void {
		for (const channel of channels) if (channel.name === name) channel.onNotify(payload);
	}

	async function subscribe(hearing: Hearing, wanted: readonly Channel[]): Promise<void> {
		const client = await hearing.client;
		for (const { name } of wanted) await inTime(client`listen ${client(name)}`, CONNECT_MS_MAX);
		for (const { onListen, heard } of wanted) {
			onListen();
			heard();
		}
	}

	async function probe(hearing: Hearing): Promise<void> {
		const client = await hearing.client;
		await inTime(client`select 1`, ANSWER_MS_MAX);
	}

	function probeSoon(hearing: Hearing): void {
		if (hearing !== present) return;
		failures = 0;
		hearing.cancelProbe = clock.after(PROBE_MS, () => {
			probe(hearing).then(
				() => probeSoon(hearing),
				(error) => giveUp(hearing, error),
			);
		});
	}

	history?.onMove(() => {
		if (present?.isChecked) giveUp(present, new Error("the database is on another server"));
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

	function drop({ link }: Hearing): void {
		link.end({ timeout: 0 }).catch((error) => log.debug("closing a silent database connection failed", { error }));
	}

	return {
		/**
		 * Resolves once channel `name` is subscribed. Calls `onListen` then and after each reconnection: notifications in
		 * between are lost, so the caller must read what it missed.
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
			await last?.link.end({ timeout: 1 });
		},
	};
}
