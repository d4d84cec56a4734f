import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { Config } from "../config.ts";
import { createStatements } from "../db/statements.ts";
import type { BlobStore } from "../files/blob-store.ts";
import { createDiskBlobs } from "../files/disk-blobs.ts";
import { startFileSweep } from "../files/file-sweep.ts";
import { createFiles, type Files } from "../files/files.ts";
import { createPostgresBlobs } from "../files/postgres-blobs.ts";
import { createS3Blobs } from "../files/s3-blobs.ts";
import type { GatewayDeps } from "./gateway-deps.ts";

/** Its statements carry 256 KB each. */
const BLOB_STATEMENT_DEADLINE_MS = 15_000;
const BLOB_CONNECTIONS_MAX = 2;

/** Opens the files of accounts in the configured store; older files are read from the store they are in. */
export function openFiles(config: Pick<Config, "dataDir" | "fileS3" | "fileStore">, deps: GatewayDeps): Files {
	const { db, clock, log, cleanup, catalog } = deps;
	// Connects on its first use.
	const statements = createStatements(
		{ clock, log },
		{
			url: db.url,
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
		},
		{ secret: deps.secrets.keyPepper },
	);
	const sweep = startFileSweep({ files, clock, log });
	cleanup.add(() => sweep.stop());
	return files;
}
