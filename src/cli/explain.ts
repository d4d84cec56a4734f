import { errorRecord, errorText } from "../base/error-record.ts";
import { Fault } from "../base/fault.ts";
import { ConfigError } from "../config.ts";
import { AnswerLost, DatabaseBusy, DatabaseTimeout, WrongServer } from "../db/outage.ts";
import { UsageError } from "./command.ts";
import remedies from "./database-remedies.yaml" with { type: "text" };

export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** Texts for system error codes of anything but the database. */
const SYSTEM_CODES: Readonly<Record<string, string>> = {
	EADDRINUSE: "the port is in use: set PORT to another one",
	EADDRNOTAVAIL: "HOST is not an address of this machine",
	EACCES: "permission denied",
	ENOSPC: "the disk is full",
};

/** Formats an error for the terminal. Only a bug is shown with its stack. */
export function explainError(error: unknown) {
	const failed = (code: string, message: string) => ({ code, message, exitCode: EXIT_FAILED });
	if (error instanceof UsageError) return { code: "usage", message: error.message, exitCode: EXIT_USAGE };
	if (error instanceof Fault) {
		return failed(error.code, error.private === undefined ? error.message : `${error.message} (${error.private})`);
	}
	if (error instanceof ConfigError) return failed("configuration", error.message);
	if (error instanceof DatabaseTimeout || error instanceof AnswerLost)
		return failed(
			"service_unavailable",
			`${error.message}. The command may have taken effect: check before you repeat it`,
		);
	if (error instanceof DatabaseBusy)
		return failed("service_unavailable", `the database: ${error.message}. Nothing was changed: try again.`);
	if (error instanceof WrongServer) return failed("service_unavailable", error.message);
	const { code, message = "", name, path, syscall } = error as Partial<NodeJS.ErrnoException>;
	if (typeof code !== "string" || name === "TypeError") return failed("internal_error", traceOf(error));
	const known = SYSTEM_CODES[code];
	if (known !== undefined) return failed("service_unavailable", message === "" ? known : `${known} (${message})`);
	if (syscall === "listen") return failed("service_unavailable", `cannot listen on HOST and PORT: ${message}`);
	// An error during a TLS handshake also has a `path`, which is not the path of a file.
	if (typeof path === "string") return failed("file", message);
	// Messages of the database driver may contain hosts and user names, but never passwords.
	const said = `the database: ${message === "" ? code : message}`;
	const remedy = databaseRemedy(error);
	return failed("service_unavailable", remedy === undefined ? said : `${said}. ${remedy}`);
}

function traceOf(error: unknown): string {
	return error instanceof Error ? `${errorText(error)}\n${errorRecord(error).stack}` : String(error);
}

interface Remedies {
	readonly codes: Readonly<Record<string, string>>;
	readonly messages: readonly { readonly code: string; readonly matches: string; readonly remedy: string }[];
}

/** Returns the remedy for an unusable database; undefined for unknown errors. */
function databaseRemedy(error: unknown): string | undefined {
	const { code, message } = error as { code?: unknown; message?: unknown };
	const { codes, messages } = Bun.YAML.parse(String(remedies)) as Remedies;
	const closer = messages.find((one) => one.code === code && new RegExp(one.matches).test(String(message)));
	return closer?.remedy ?? codes[String(code)];
}
