import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Socket } from "bun";

export interface ReceivedMail {
	/** Mail addresses of the recipients, in lower case. */
	readonly to: readonly string[];
	readonly subject: string;
	readonly text: string;
	readonly head: string;
}

interface Session {
	readonly socket: Socket<Session>;
	rest: string;
	to: string[];
	isData: boolean;
}

/**
 * A mail server on this machine that accepts mails from all processes. It answers the first mails with `refusals`, one
 * each, and discards these mails.
 */
export function startMailServer(refusals: readonly string[] = []) {
	const mails: ReceivedMail[] = [];
	const waiting = [...refusals];
	const end = (mail: ReceivedMail) => {
		const refusal = waiting.shift();
		if (refusal === undefined) mails.push(mail);
		return refusal ?? "250 taken";
	};
	let connections = 0;
	const listen = (port: number) =>
		Bun.listen<Session>({
			hostname: "127.0.0.1",
			port,
			socket: {
				open(socket) {
					connections += 1;
					socket.data = { socket, rest: "", to: [], isData: false };
					socket.write("220 mail.example ESMTP\r\n");
				},
				data: (socket, bytes) => take(socket.data, bytes.toString("latin1"), end),
				error() {},
			},
		});
	let server = listen(0);
	const { port } = server;
	return {
		url: `smtp://127.0.0.1:${port}`,
		mails,
		/** Explains a missing mail: number of connections, and whether a connection succeeds now. Listens again if not. */
		async look() {
			const seen = connections;
			const answers = await greets(port);
			const said = `${seen} connections, ${mails.length} mails, one more is ${answers ? "answered" : `not answered, ${stateOf(port)}`}`;
			if (!answers) {
				server.stop(true);
				server = listen(port);
			}
			return said;
		},
		stop: () => server.stop(true),
	};
}

/** Returns the kernel's state of this process's listening port. */
function stateOf(port: number): string {
	const at = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
	const lines = readFileSync("/proc/net/tcp", "utf8")
		.split("\n")
		.map((line) => line.trim().split(/\s+/));
	const listening = lines.filter(([, local, , state]) => local === at && state === "0A");
	const ours = new Set(readdirSync("/proc/self/fd").map(linkOf));
	const said = listening.map(
		([, , , , queues, , , , , inode]) => `${ours.has(`socket:[${inode}]`) ? "ours" : "another's"}, queues ${queues}`,
	);
	return `listening: ${said.join("; ") || "nobody"}`;
}

function linkOf(descriptor: string): string {
	try {
		return readlinkSync(`/proc/self/fd/${descriptor}`);
	} catch {
		return "";
	}
}

/** True if a new connection gets the server's greeting within some seconds. */
async function greets(port: number): Promise<boolean> {
	const greeted = Promise.withResolvers<boolean>();
	const socket = { open() {}, data: () => greeted.resolve(true), close: () => greeted.resolve(false), error() {} };
	const client = await Bun.connect({ hostname: "127.0.0.1", port, socket }).catch(() => undefined);
	const answers = client !== undefined && (await Promise.race([greeted.promise, Bun.sleep(3_000).then(() => false)]));
	client?.end();
	return answers;
}

function take(session: Session, text: string, ended: (mail: ReceivedMail) => string): void {
	session.rest += text;
	for (;;) {
		const end = session.rest.indexOf(session.isData ? "\r\n.\r\n" : "\r\n");
		if (end < 0) return;
		const part = session.rest.slice(0, end);
		session.rest = session.rest.slice(end + (session.isData ? 5 : 2));
		if (session.isData) {
			const answer = ended(mailOf(part, session.to));
			session.to = [];
			session.isData = false;
			session.socket.write(`${answer}\r\n`);
		} else obey(session, part);
	}
}

function obey(session: Session, line: string): void {
	const verb = line.slice(0, 4).toUpperCase();
	const recipient = /^RCPT TO:<([^>]*)>/i.exec(line)?.[1];
	if (recipient !== undefined) session.to.push(recipient.toLowerCase());
	session.isData = verb === "DATA";
	if (verb === "QUIT") session.socket.end("221 bye\r\n");
	else session.socket.write(session.isData ? "354 go on\r\n" : "250 well\r\n");
}

function mailOf(raw: string, to: string[]): ReceivedMail {
	const split = raw.indexOf("\r\n\r\n");
	const head = raw.slice(0, split).replace(/\r\n[ \t]+/g, " ");
	const body = raw.slice(split + 4).replace(/^\.\./gm, ".");
	const field = (name: string) => new RegExp(`^${name}: (.*)$`, "im").exec(head)?.[1]?.trim() ?? "";
	return { to, subject: field("subject"), text: decoded(body, field("content-transfer-encoding").toLowerCase()), head };
}

function decoded(body: string, encoding: string): string {
	if (encoding === "base64") return Buffer.from(body, "base64").toString();
	if (encoding !== "quoted-printable") return body;
	const bytes = body
		.replace(/=\r\n/g, "")
		.replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
	return Buffer.from(bytes, "latin1").toString();
}
