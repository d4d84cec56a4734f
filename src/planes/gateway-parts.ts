import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/time-slice.ts";
import { createBatchBooks } from "../batch/batch-books.ts";
import { createBatchRunner } from "../batch/batch-runner.ts";
import { createBatches } from "../batch/batches.ts";
import type { LineSender } from "../batch/line-work.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { visibleCatalog } from "../catalog/visibility.ts";
import type { Config } from "../config.ts";
import type { Database } from "../db/database.ts";
import { createStatements } from "../db/statements.ts";
import { type BlobStore, createDiskBlobs, createPostgresBlobs, createS3Blobs } from "../files/blob-store.ts";
import type { DiskRoom } from "../files/disk-room.ts";
import { createFiles, type Files, startFileSweep } from "../files/files.ts";
import type { BodyReads } from "../gateway/body/body-reads.ts";
import { createAuthenticate } from "../gateway/serve/authenticate.ts";
import type { OpenStreams } from "../gateway/serve/open-streams.ts";
import { findAccount } from "../keys/account-admin.ts";
import { createFailedAttempts } from "../keys/failed-attempts.ts";
import { createKeyLoadLimiter } from "../keys/key-load-limiter.ts";
import { createKeyring, type Keyring, keyLoader } from "../keys/keyring.ts";
import { createPgShareStore, LIMITS_CHANNEL } from "../keys/limit-shares.ts";
import { createDigest } from "../keys/secret.ts";
import { type InstanceLease, startInstanceLease } from "../ledger/instance-lease.ts";
import { createKeyLimits, type KeyLimits } from "../limits/key-limits.ts";
import type { Secrets } from "../secrets.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { drainListener } from "./drain-listener.ts";

interface GatewayDeps {
	readonly db: Database;
	readonly clock: Clock;
	readonly log: Log;
	readonly cleanup: Cleanup;
	readonly catalog: Catalog;
	readonly secrets: Pick<Secrets, "keyPepper">;
}

/** Limit of failed key look-ups. Each costs Postgres an index read; 500 per second take a few percent of a core. */
const FAILED_LOOK_UPS_PER_MINUTE_MAX = 30_000;

/** Creates the keyring and the authentication of requests. */
export function openKeys(config: Pick<Config, "serviceName">, deps: GatewayDeps) {
	const { db, clock, log, catalog } = deps;
	const keyring = createKeyring({ load: keyLoader(db.ledger, db.history), log });
	const failedAttempts = createFailedAttempts(
		{ clock },
		{ perMinuteMax: () => catalog.limits().authFailuresPerMinute },
	);
	const keyLoadLimiter = createKeyLoadLimiter(
		{ keyring, failedAttempts, clock },
		{ failuresPerMinuteMax: FAILED_LOOK_UPS_PER_MINUTE_MAX },
	);
	const digest = createDigest(deps.secrets.keyPepper);
	const authenticate = createAuthenticate(
		{ keyring, keyLoadLimiter, digest, failedAttempts, clock },
		{ serviceName: config.serviceName },
	);
	return { keyring, authenticate };
}

type Opened = Pick<GatewayDeps, "db" | "clock" | "log" | "cleanup">;

/** Opens the instance's lease, which contains its right to admit and its part of the credit. */
export async function openLease(
	config: Pick<Config, "dataDir" | "journal" | "journalKeepMs" | "leaseTtlMs">,
	deps: Opened & {
		readonly keyring: Keyring;
		readonly secrets: Pick<Secrets, "instanceId">;
		onDiskFailed(error: unknown): void;
	},
): Promise<InstanceLease> {
	const { db, clock, log, keyring } = deps;
	const instanceLease = await startInstanceLease(
		{
			db,
			clock,
			log,
			apply: (entry) => keyring.apply(entry),
			reset: (seq) => keyring.clear(seq),
			onDiskFailed(error) {
				log.error("the journal's disk failed; this process ends", { error });
				deps.onDiskFailed(error);
			},
		},
		{
			instanceId: deps.secrets.instanceId,
			dataDir: config.dataDir,
			mode: config.journal,
			keepMs: config.journalKeepMs,
			leaseTtlMs: config.leaseTtlMs,
		},
	);
	deps.cleanup.add(() => instanceLease.stop(FORCED_STOP_MS));
	return instanceLease;
}

/** Opens this instance's share of each key's request limits. */
export async function openKeyLimits(deps: Opened & { instanceLease: InstanceLease }): Promise<KeyLimits> {
	const { db, instanceLease, clock, log } = deps;
	const store = createPgShareStore({ statements: db.statements, instanceLease });
	const keyLimits = createKeyLimits({ clock, shared: { store, log, openings: instanceLease.gate.openings } });
	deps.cleanup.add(() => keyLimits.stop());
	await db.listen(
		LIMITS_CHANNEL,
		(keyId) => keyLimits.recall(keyId),
		() => {},
	);
	return keyLimits;
}

/** Longer than for other statements, because each transfers 256 KB. */
const BLOB_STATEMENT_DEADLINE_MS = 15_000;
const BLOB_CONNECTIONS_MAX = 2;

/** Opens the file store for new files. An existing file is read from the store that contains it. */
export function openFiles(
	config: Pick<Config, "dataDir" | "fileS3" | "fileStore">,
	deps: GatewayDeps & { room: DiskRoom },
): Files {
	const { db, clock, log, cleanup, catalog } = deps;
	// A client of Postgres that connects at its first use.
	const statements = createStatements(
		{ clock, log },
		{
			url: db.url,
			history: db.history,
			applicationName: "tollgate files",
			connectionsMax: BLOB_CONNECTIONS_MAX,
			statementDeadlineMs: BLOB_STATEMENT_DEADLINE_MS,
		},
	);
	cleanup.add(() => statements.end());
	const all: BlobStore[] = [
		createDiskBlobs({ folder: join(config.dataDir, "files") }),
		createPostgresBlobs({ statements }),
		...(config.fileS3 === null ? [] : [createS3Blobs({ clock }, config.fileS3)]),
	];
	const main = all.find(({ name }) => name === config.fileStore);
	assert(main !== undefined, "the configuration is refused where its store of files is not described");
	const files = createFiles(
		{
			statements: db.statements,
			clock,
			log,
			stores: { main, others: all.filter((store) => store !== main) },
			limits: () => catalog.limits(),
			room: config.fileStore === "s3" ? { check() {} } : deps.room,
		},
		{ secret: deps.secrets.keyPepper },
	);
	cleanup.add(startFileSweep({ files, clock, log }).stop);
	return files;
}

/** After the last line has ended, outcomes must be stored and the queue released within this time. */
const STOP_MS_MAX = 15_000;

/** Opens batches and runs this instance's share of them, once a model supports batches. */
export function openBatches(
	options: { readonly drainMs: number },
	deps: GatewayDeps & { files: Files; carrier: LineSender },
) {
	const { db, clock, log, catalog, files, carrier } = deps;
	const books = createBatchBooks(db);
	const snapshot = () => catalog.current();
	const graceMs = options.drainMs / 2;
	const refused = new Set<string>();
	const visible = async (accountId: string) =>
		visibleCatalog(snapshot(), await findAccount(db.statements, accountId), clock.wallMs());
	const runner = createBatchRunner({ refused, books, files, carrier, clock, log, snapshot: visible, graceMs }, db);
	const batches = createBatches({ books, files, snapshot, wake: runner.wake });
	const startIfOffered = () => {
		if (batches.areOffered()) void runner.start();
	};
	startIfOffered();
	const forget = catalog.onChange(startIfOffered);
	let stopping: Promise<void> | undefined;
	const stop = () => {
		forget();
		stopping ??= runner.stop();
		return stopping;
	};
	deps.cleanup.add(stop, graceMs + STOP_MS_MAX);
	return {
		...batches,
		/** Number of batches that wait because Postgres refuses their outcomes. */
		refused: () => refused.size,
		/** Stops sending lines. Lines in flight may continue for half of the drain time. */
		stop,
	};
}

/** Time in which the last settlements may be written after the drain. */
const FORCED_STOP_MS = 2_000;

/** Time in which the last errors may reach clients; slow readers are not awaited longer. */
const LAST_ANSWERS_MS_MAX = 500;
const LOOK_MS = 5;

interface Stops {
	stop(now?: boolean): Promise<unknown>;
}

/** Drains a gateway: serves running requests until the deadline, then returns all credit to Postgres. */
export async function drainGateway(
	plane: {
		clock: Clock;
		log: Log;
		cleanup: Cleanup;
		batches: Stops;
		server: Stops & { readonly pendingRequests: number };
		internalServer: Stops | undefined;
		instanceLease: InstanceLease;
		openStreams: OpenStreams;
		upstreams: Pick<Upstreams, "letGo">;
		bodyReads: Pick<BodyReads, "letGo">;
	},
	{ drainEndMs }: { drainEndMs: number },
): Promise<void> {
	const { clock, log, server, instanceLease } = plane;
	const leftMs = () => Math.max(0, drainEndMs - clock.monotonicMs());
	void plane.batches.stop();
	await drainListener(server);
	// Credit is returned after the last request, because a body that is still arriving is served. The internal server
	// stops after the public one, because consoles forward requests of waiting clients to it.
	const closed = server.stop().then(() => plane.internalServer?.stop());
	await Promise.race([closed, Bun.sleep(leftMs())]);
	const drained = instanceLease.stop(leftMs() + FORCED_STOP_MS);
	await Promise.race([drained, Bun.sleep(leftMs())]);
	// At the deadline, the remaining clients get an error with the usage so far.
	plane.openStreams.shutDown();
	plane.upstreams.letGo();
	plane.bodyReads.letGo();
	// In the next event-loop turn the runtime sends the clients' last bytes.
	await nextTurn();
	for (const deadline = performance.now() + LAST_ANSWERS_MS_MAX; server.pendingRequests > 0; await Bun.sleep(LOOK_MS))
		if (performance.now() >= deadline) break;
	await server.stop(true);
	// The journal has all settlements, but an operator who deletes the volume would lose them.
	if (!(await drained))
		log.warn("some settlements are not in the database: the journal keeps them for the next start on this DATA_DIR");
	await plane.cleanup.run();
}
