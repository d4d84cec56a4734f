import { expect, test } from "bun:test";
import { checkMail } from "../../../src/cli/doctor/check-partners.ts";
import { loadConfig } from "../../../src/config.ts";
import { createSmtpTransport } from "../../../src/console/mail/smtp-transport.ts";
import { atEnd } from "../../support/at-end.ts";
import { waitFor } from "../../support/wait.ts";

const PASSWORD = "canary/7f:3 ü";

/** Starts a mail server whose error messages quote the client's commands, including the login; returns its address. */
function startParrot(ways: string): string {
	const server = Bun.listen({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			open: (socket) => void socket.write("220 mail.example ESMTP\r\n"),
			data(socket, bytes) {
				const line = bytes.toString().trim();
				if (line.startsWith("EHLO")) return void socket.write(`250-mail.example\r\n250 AUTH ${ways}\r\n`);
				if (line === "AUTH LOGIN") return void socket.write("334 VXNlcm5hbWU6\r\n");
				if (line === Buffer.from("me").toString("base64")) return void socket.write("334 UGFzc3dvcmQ6\r\n");
				const words = Buffer.from(line.split(" ").at(-1) ?? "", "base64")
					.toString()
					.replaceAll("\0", " ");
				socket.write(`500 5.5.1 Command unrecognized: "${line}" (${words})\r\n`);
			},
		},
	});
	atEnd(() => server.stop(true));
	return `smtp://me:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}`;
}

test("an error that quotes the SMTP login shows the password in no encoding", async () => {
	for (const way of ["PLAIN", "LOGIN"]) {
		const url = startParrot(way);
		const transport = createSmtpTransport(url, 5_000);
		const send = () => transport.send({ from: "a@b.example", to: "c@d.example", subject: "s", text: "t" });
		const config = loadConfig({ SMTP_URL: url, MAIL_FROM: "a@b.example" }, "/");
		const said = [
			...(await Promise.all([transport.verify, send].map((work) => work().then(() => [], whole)))).flat(),
			JSON.stringify(await checkMail(config)),
		];
		transport.close();
		expect([way, said.length]).toEqual([way, 9]);
		expect(said.filter((text) => text.includes("Command unrecognized")).length).toBeGreaterThan(2);
		const forms = [PASSWORD, encodeURIComponent(PASSWORD)].flatMap((form) => [form, form.slice(0, 8)]);
		const packed = [`\0me\0${PASSWORD}`, PASSWORD].map((text) => Buffer.from(text).toString("base64").slice(6, -4));
		for (const form of [...forms, ...packed]) expect(said.filter((text) => text.includes(form))).toEqual([]);
	}
});

function whole(error: Error & { response?: string; command?: string }): string[] {
	const { message, stack = "", response = "" } = error;
	return [message, stack, response, JSON.stringify(error, Object.getOwnPropertyNames(error))];
}

test("a mail server whose reply never ends is disconnected", async () => {
	const open = new Set<unknown>();
	const server = Bun.listen<{ timer?: Timer }>({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			open(socket) {
				socket.data = {};
				open.add(socket);
				socket.write("220 mail.example ESMTP\r\n");
			},
			data(socket) {
				socket.data.timer ??= setInterval(() => socket.write("250-mail.example\r\n"), 20);
			},
			close(socket) {
				clearInterval(socket.data.timer);
				open.delete(socket);
			},
		},
	});
	atEnd(() => server.stop(true));
	const transport = createSmtpTransport(`smtp://127.0.0.1:${server.port}`, 5_000, 300);
	await expect(transport.send({ from: "a@b.example", to: "c@d.example", subject: "s", text: "t" })).rejects.toThrow();
	await waitFor(() => open.size === 0, "the connections to end");
});
