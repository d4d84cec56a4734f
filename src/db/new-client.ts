import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import postgres from "postgres";
import { sleep, systemClock, withDeadline } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { libc } from "../base/libc.ts";
import { type DatabaseAddress, type DatabaseHost, parseAddress } from "./address.ts";
import { cancelSession } from "./cancel-session.ts";
import type { ConnectFunction, OpenClient } from "./connection.ts";
import { connectionEndedError, isServerError, noResponseError, WrongServer } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";

/** Milliseconds in which a closed client may still send its goodbye to the server. */
const GOODBYE_MS = 1_000;
const CONNECT_S = 5;
/** Level of TCP socket options, and their numbers on Linux and macOS. */
const IPPROTO_TCP = 6;
const TCP_OPTIONS = {
	keepalives_interval: { linux: 5, darwin: 0x101 },
	keepalives_count: { linux: 6, darwin: 0x102 },
	tcp_user_timeout: { linux: 18, darwin: undefined },
} as const;

/** A session's settings. The first statement sets them, because most poolers refuse or ignore start-up parameters. */
type Settings = Readonly<Record<string, string | number>>;
type Ssl = boolean | "require" | "prefer" | object;
interface Options {
	readonly connectS: number;
	readonly connection: Readonly<Record<string, string>>;
	readonly ssl: Ssl;
	onclose(): void;
}

interface Attempt {
	readonly place: DatabaseHost;
	ssl(): Ssl;
}

/**
 * Returns a function that opens clients with one connection each. It tries the hosts of `url` in turn, beginning with
 * the host that answered last. If there are several hosts, it skips standbys.
 */
export function createConnector(url: string, settings: Settings = {}, connectSeconds = CONNECT_S): ConnectFunction {
	const address = parseAddress(url);
	const attempts = address.hosts.flatMap((place) => attemptsAt(address, place));
	const { application_name: ownName = "tollgate", ...others } = settings;
	const connection = { application_name: address.applicationName ?? String(ownName) };
	const connectS = address.connectS ?? connectSeconds;
	const greeting = greetingOf([...address.settings, ...Object.entries(others)], address.hosts.length > 1);
	let first = 0;

	async function greet(query: PromiseLike<postgres.Row[]>): Promise<void> {
		const [row] = await withDeadline(systemClock, query, 2_000 * connectS, noResponseError);
		if (row?.standby === true) throw new WrongServer("the database's address leads to a standby, which only reads");
	}

	return (hooks, backoff = createReconnectBackoff(systemClock.monotonicMs)) => {
		let client: postgres.Sql | undefined;
		let ended = false;
		let cancel = async () => {};
		async function open(): Promise<postgres.Sql> {
			const errors: unknown[] = [];
			for (const _ of attempts) {
				const at = first;
				const { place, ssl } = attempts[at] as Attempt;
				let isGreeted = false;
				const onclose = () => isGreeted && hooks?.onclose?.();
				const pausing = errors.length === 0 ? backoff : createReconnectBackoff(systemClock.monotonicMs);
				const its = newClient(address, place, { ...hooks, onclose, connection, connectS, ssl: ssl() }, pausing);
				client = its;
				try {
					const greeted = its.unsafe(greeting);
					cancel = () => cancelSession(place, greeted);
					await greet(greeted);
					isGreeted = true;
					return its;
				} catch (error) {
					if (first === at) first = (at + 1) % attempts.length;
					void its.end({ timeout: 0 });
					errors.push(error);
					if (ended) break;
				}
			}
			// Prefers errors of servers and connections to those of standbys: a host without answer may be the primary.
			throw errors.find(isServerError) ?? errors.find((error) => !(error instanceof WrongServer)) ?? errors[0];
		}
		const ready = open();
		// Callers that wait get the error; without callers, an unhandled rejection would end the process.
		ready.catch(() => {});
		return {
			ready,
			async end(how) {
				ended = true;
				await client?.end(how);
			},
			cancel: () => cancel(),
		};
	};
}

/** Runs `work` with a client of `url` and closes the client afterwards. */
export async function withClient<Result>(
	url: string,
	work: (client: postgres.Sql) => Promise<Result>,
	connectSeconds = 10,
): Promise<Result> {
	const opened: OpenClient = createConnector(url, {}, connectSeconds)();
	try {
		return await work(await opened.ready);
	} finally {
		await opened.end({ timeout: 1 });
	}
}

/** Ways to connect to a host, in order: `allow` tries without TLS first. Unix sockets never use TLS. */
function attemptsAt({ sslMode, sslRootCert }: DatabaseAddress, place: DatabaseHost): readonly Attempt[] {
	if (place.host.startsWith("/") || sslMode === "disable") return [{ place, ssl: () => false }];
	if (sslMode === "require" || sslMode === "prefer") return [{ place, ssl: () => sslMode }];
	if (sslMode === "allow") return [false, "require" as const].map((ssl) => ({ place, ssl: () => ssl }));
	const identity = (_: string, certificate: PeerCertificate) =>
		sslMode === "verify-full" ? checkServerIdentity(place.host, certificate) : undefined;
	return [
		{
			place,
			ssl: () => ({
				rejectUnauthorized: true,
				checkServerIdentity: identity,
				// Read again for each connection, because the operator may have renewed the file.
				...(sslRootCert === undefined || sslRootCert === "system" ? {} : { ca: readFileSync(sslRootCert) }),
			}),
		},
	];
}

/** First statement of a connection: sets all settings. `set_config` parses lists as start-up parameters are parsed. */
function greetingOf(settings: readonly (readonly [string, string | number])[], isOneOfMany: boolean): string {
	const set = settings.map(([name, value]) => `set_config(${literal(name)}, ${literal(String(value))}, false)`);
	return `select ${[...set, isOneOfMany ? "pg_is_in_recovery() as standby" : "1"].join(", ")}`;
}

/** A literal that means the same with any value of `standard_conforming_strings`. */
const literal = (text: string) => `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function setTcpOptions(socket: Socket, { keepAliveS, keepAlive }: DatabaseAddress): void {
	socket.setKeepAlive(keepAliveS > 0, keepAliveS * 1_000);
	const fd = (socket as { _handle?: { fd?: number } })._handle?.fd;
	for (const [name, { linux, darwin }] of Object.entries(TCP_OPTIONS)) {
		const value = keepAlive[name as keyof typeof TCP_OPTIONS] ?? 0;
		const option = process.platform === "darwin" ? darwin : linux;
		if (value === 0 || option === undefined || fd === undefined) continue;
		libc().setsockopt(fd, IPPROTO_TCP, option, Int32Array.of(value), 4);
	}
}

/**
 * The driver with exactly one connection in its life, our own sockets, and our own parsing of URLs. The driver's parser
 * cuts IPv6 addresses, does not know socket folders, and shows parts of a password that contains a comma. Its
 * reconnects have no pause after a socket closed without an error, and connect even for a client that ended.
 *
 * The client ends with its connection: a second session would lack the locks and settings of the first, and a statement
 * between a socket's error and close would never be answered.
 */
function newClient(
	address: DatabaseAddress,
	{ host, port }: DatabaseHost,
	{ connectS, ...options }: Options,
	backoff: ReconnectBackoff,
): postgres.Sql {
	const isFolder = host.startsWith("/");
	let ended = false;
	let socket: Socket | undefined;
	const client = postgres({
		onnotice: () => {},
		...options,
		...(address.user === "" ? {} : { user: address.user }),
		...(address.password === "" ? {} : { pass: address.password }),
		...(address.database === "" ? {} : { database: address.database }),
		// A list, which the driver's types lack: as a text the host would be cut at each colon and comma.
		...(isFolder ? { path: `${host}/.s.PGSQL.${port}` } : { host: [host], port: [port] }),
		connect_timeout: connectS,
		max: 1,
		backoff: 0,
		idle_timeout: 0,
		max_lifetime: null,
		keep_alive: 0,
		// Disables the driver's query for array types: if it is interrupted, an unhandled rejection ends the process.
		fetch_types: false,
		onclose: closed,
		async socket() {
			const pauseMs = backoff.pauseMs();
			if (pauseMs > 0) await sleep(systemClock, pauseMs);
			if (ended) throw connectionEndedError();
			backoff.made();
			const made = new Socket();
			socket = made;
			// Ends the client before the driver reports the error: until then the client would accept statements.
			made.once("error", closed);
			if (!isFolder) made.once("connect", () => setTcpOptions(made, address));
			// Connects in a later tick, after the driver has added its listener for socket errors.
			setImmediate(() => {
				if (ended) made.destroy();
				else if (isFolder) made.connect({ path: `${host}/.s.PGSQL.${port}` });
				else made.connect({ host, port });
			});
			// The driver uses this host name for TLS.
			return Object.assign(made, { host, port });
		},
	} as object);
	function closed(): void {
		void client.end({ timeout: 0 });
		options.onclose();
	}
	const end = client.end;
	client.end = async (how) => {
		// With a timeout, the client may still connect to finish its work.
		if (how?.timeout === 0) ended = true;
		await end(how);
		ended = true;
		// Destroys the socket of a server that does not respond, because the driver would wait for its close.
		setTimeout(() => socket?.destroy(), GOODBYE_MS).unref();
	};
	return client;
}

/** Runs a statement in one of two database sessions and returns its rows. */
export type PoolerSession = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const TOKEN_SETTING = "tollgate.doctor";

/**
 * True if a pooler shares server sessions between transactions, so that a setting or LISTEN of one session takes effect
 * in another. Poolers that keep a server session per client cause no problem.
 */
export async function isPooledByTransaction(a: PoolerSession, b: PoolerSession): Promise<boolean> {
	const token = crypto.randomUUID();
	const seenBy = async (session: PoolerSession) =>
		(await session(`select pg_backend_pid() as pid, current_setting('${TOKEN_SETTING}', true) as token`))[0];
	await a(`select set_config('${TOKEN_SETTING}', '${token}', false)`);
	const before = await seenBy(a);
	// Such a pooler assigns any free server session: b gets the session that a had, or a gets another.
	const others = await seenBy(b);
	const after = await seenBy(a);
	const isShared = others?.pid === before?.pid || others?.token === token;
	return isShared || after?.pid !== before?.pid || after?.token !== token;
}

/** Milliseconds for a connection to answer. A pooler accepts connections even if no server can answer. */
const ANSWER_MS_MAX = 10_000;

/**
 * Checks that `client` has its own server session. Must be the first check: a lock of the start that is taken in a
 * shared session would stay for ever.
 */
export async function checkOwnSession(client: postgres.Sql, url: string): Promise<void> {
	const problem = await sessionProblem(client, url);
	if (problem !== undefined) throw new Fault("service_unavailable", problem);
}

/** Like `checkOwnSession`, with new clients: a pooler may change its mode while the service runs. */
export const poolerProblem = (url: string) => withClient(url, (client) => sessionProblem(client, url));

async function sessionProblem(client: postgres.Sql, url: string): Promise<string | undefined> {
	const session = (of: postgres.Sql) => async (statement: string) => [...(await of.unsafe(statement))];
	const isPooled = (other: postgres.Sql) => inTime(isPooledByTransaction(session(client), session(other)));
	if (!(await withClient(url, isPooled))) return undefined;
	return "A pooler hands sessions of the database around between transactions: connect to PostgreSQL itself, or set the pooler to session mode.";
}

function inTime<T>(answer: PromiseLike<T>): Promise<T> {
	return withDeadline(systemClock, answer, ANSWER_MS_MAX, noResponseError);
}
