import { Button, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { api } from "../api.ts";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import type { OutboxMail } from "../views.ts";
import { Notice } from "./problem.tsx";

const ASK_EVERY_MS = 1_000;
const ASKS_MAX = 120;

const ON_ITS_WAY = {
	verify:
		"If {email} can be used here, a mail with a link to verify the address is on its way. The link works once. Check your spam folder if it does not arrive.",
	reset:
		"If {email} has an account, a mail with a link to set a new password is on its way. The link works once. Check your spam folder if it does not arrive.",
} as const;

/** Says that a mail was sent. In the demo without a mail server, viewers on this machine see the mail's link here. */
export function MailSent({ email, what }: { email: string; what: keyof typeof ON_ITS_WAY }) {
	const { config } = useSession();
	const mail = useOutbox(config.demo ? email : null);
	return (
		<>
			<p>{rich(ON_ITS_WAY[what], { email: <strong>{email}</strong> })}</p>
			{mail?.link && (
				<Notice kind="warn">
					<Stack gap={14}>
						<span>
							{t("This is a demo without a mail server. The mail would say: “{subject}”.", { subject: mail.subject })}
						</span>
						<Button component="a" href={mail.link} variant="default">
							{t("Open the link in the mail")}
						</Button>
					</Stack>
				</Notice>
			)}
		</>
	);
}

function useOutbox(email: string | null): OutboxMail | undefined {
	const [mail, setMail] = useState<OutboxMail>();
	useEffect(() => {
		if (email === null || mail) return;
		let asks = 0;
		const timer = setInterval(async () => {
			asks += 1;
			if (asks >= ASKS_MAX) clearInterval(timer);
			try {
				const { items } = await api.outbox(email);
				const newest = [...items].sort((a, b) => b.atMs - a.atMs).find((item) => item.link !== null);
				if (newest) setMail(newest);
			} catch {
				// The service has no outbox, so it sends real mails: polling stops.
				clearInterval(timer);
			}
		}, ASK_EVERY_MS);
		return () => clearInterval(timer);
	}, [email, mail]);
	return mail;
}
