/**
 * Secrets that the first run creates in `DATA_DIR`: the pepper of key digests, the console's session secret, and the
 * instance's name. Nothing has a default secret. Without the pepper all stored keys are useless, so a damaged file
 * stops the service and is never replaced.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { assert } from "./base/assert.ts";
import { type Config, ConfigError } from "./config.ts";

export interface Secrets {
	readonly keyPepper: string;
	/** Empty in a gateway, which has no sessions. */
	readonly consoleSecret: string;
	readonly instanceId: string;
	/** Variables whose values were created now; the terminal names them. */
	readonly made: readonly ("KEY_PEPPER" | "CONSOLE_SECRET" | "INSTANCE_ID")[];
	/** Path of the file with the pepper. */
	readonly path: string;
}

const SECRET_BYTES = 32;
const INSTANCE_ID_BYTES = 6;
const OWNER_ONLY = 0o600;
const NOT_IN_PRODUCTION = "in production the configuration is refused without its secrets";

type PepperConfig = Pick<Config, "keyPepper" | "production" | "dataDir">;
type SecretsConfig = PepperConfig & Pick<Config, "consoleSecret" | "instanceId" | "role">;

/**
 * Returns the configured secrets and reads missing ones from `DATA_DIR`, one file each (mode 0600), created if absent:
 * `secrets.json` has the pepper; `console-secret` is never opened by a gateway. Processes that start together get the
 * same secrets. @throws ConfigError if a file is damaged or cannot be written.
 */
export function loadOrCreateSecrets(config: SecretsConfig): Secrets {
	const made: Secrets["made"][number][] = [];
	let { consoleSecret, instanceId } = config;
	const { keyPepper, isNew, path } = loadOrCreatePepper(config);
	if (isNew) made.push("KEY_PEPPER");
	if (config.role === "gateway") consoleSecret = "";
	if (consoleSecret === null) {
		assert(!config.production, NOT_IN_PRODUCTION);
		const kept = keepConsoleSecret(config.dataDir);
		consoleSecret = kept.secret;
		if (kept.isNew) made.push("CONSOLE_SECRET");
	}
	if (instanceId === null) {
		const idPath = join(config.dataDir, "instance-id");
		const kept = keepOnce(idPath, () => `instance-${hex(INSTANCE_ID_BYTES)}\n`);
		instanceId = kept.text.trim();
		if (!/^[A-Za-z0-9._-]{1,63}$/.test(instanceId))
			throw new ConfigError([`${idPath} does not contain a valid instance name`]);
		if (kept.isNew) made.push("INSTANCE_ID");
	}
	return Object.freeze({ keyPepper, consoleSecret, instanceId, made: Object.freeze(made), path });
}

/** Only the pepper, for commands that create keys. Throws as `loadOrCreateSecrets` does. */
export function loadOrCreatePepper(config: PepperConfig): {
	readonly keyPepper: string;
	readonly isNew: boolean;
	readonly path: string;
} {
	const path = join(config.dataDir, "secrets.json");
	if (config.keyPepper !== null) return { keyPepper: config.keyPepper, isNew: false, path };
	assert(!config.production, NOT_IN_PRODUCTION);
	const kept = keepOnce(path, () => `${JSON.stringify({ key_pepper: hex(SECRET_BYTES) }, null, "\t")}\n`);
	return { keyPepper: parsePepper(path, kept.text), isNew: kept.isNew, path };
}

/** A secret for the processes of one `serve`, or for the planes of one process. */
export const newInternalSecret = (): string => hex(SECRET_BYTES);

function keepConsoleSecret(dataDir: string) {
	const path = join(dataDir, "console-secret");
	const kept = keepOnce(path, () => `${hex(SECRET_BYTES)}\n`);
	const secret = kept.text.trim();
	if (!isSecret(secret))
		throw new ConfigError([`${path} is damaged. Delete it, which ends all sessions, or set CONSOLE_SECRET`]);
	return { secret, isNew: kept.isNew };
}

function hex(bytes: number): string {
	return randomBytes(bytes).toString("hex");
}

function parsePepper(path: string, text: string): string {
	try {
		const { key_pepper } = JSON.parse(text);
		if (isSecret(key_pepper)) return key_pepper;
	} catch {
		// A JSON value that is no object causes the same error.
	}
	throw new ConfigError([
		`${path} is damaged. Restore it, or set KEY_PEPPER and CONSOLE_SECRET; without the old KEY_PEPPER no existing key works`,
	]);
}

function isSecret(value: unknown): value is string {
	return typeof value === "string" && Buffer.byteLength(value) >= SECRET_BYTES;
}

/** Returns the file's text; creates a missing file from `make`. Of several processes the first one's text counts. */
function keepOnce(path: string, make: () => string): { readonly text: string; readonly isNew: boolean } {
	return guarded(path, () => {
		const kept = readKept(path);
		if (kept !== undefined) return { text: kept, isNew: false };
		const text = make();
		// The folder keeps its usual mode, because Postgres may run below it as another user.
		fs.mkdirSync(dirname(path), { recursive: true });
		if (writeOnce(path, text)) return { text, isNew: true };
		const others = readKept(path);
		assert(others !== undefined, "a file that could not be made because it exists can be read");
		return { text: others, isNew: false };
	});
}

function guarded<T>(path: string, work: () => T): T {
	try {
		return work();
	} catch (error) {
		const code = (error as NodeJS.ErrnoException).code;
		if (code === undefined) throw error;
		throw new ConfigError([
			`${path} cannot be read or written (${code}); DATA_DIR must be a directory that this user can write`,
		]);
	}
}

/** Text of the file; undefined if there is none. Takes other users' access away. */
function readKept(path: string): string | undefined {
	try {
		const text = fs.readFileSync(path, "utf8");
		if ((fs.statSync(path).mode & 0o077) !== 0) fs.chmodSync(path, OWNER_ONLY);
		return text;
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/**
 * Creates the file; false if it exists. It is written under another name, synced and then linked, because a rename
 * would replace another process's file.
 */
function writeOnce(path: string, text: string): boolean {
	const temporary = `${path}.${hex(8)}`;
	const descriptor = fs.openSync(temporary, "wx", OWNER_ONLY);
	// Always removes the temporary file: a crash loop, such as on a full disk, must not leave copies of a secret.
	try {
		try {
			fs.writeSync(descriptor, text);
			fs.fsyncSync(descriptor);
		} finally {
			fs.closeSync(descriptor);
		}
		fs.linkSync(temporary, path);
		syncDirectory(dirname(path));
		return true;
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
		throw error;
	} finally {
		fs.unlinkSync(temporary);
	}
}

function syncDirectory(directory: string): void {
	const descriptor = fs.openSync(directory, "r");
	try {
		fs.fsyncSync(descriptor);
	} finally {
		fs.closeSync(descriptor);
	}
}
