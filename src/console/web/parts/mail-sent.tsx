import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { api } from "../api.ts";
import { useSession } from "../session.tsx";
import type { OutboxMail } from "../views.ts";
import { Notice } from "./problem.tsx";

const ASK_EVERY_MS = 1_000;
const ASKS_MAX = 120;

/**
 * Says that a mail is on its way. The demo without a mail server keeps its mails where anybody on its machine can read
 * them: then the link stands here.
 */
export function MailSent({ email, what }: { email: string; what: string }) {
	const { config } = useSession();
	const mail = useOutbox(config.demo ? email : null);
	return (
		<>
			<p>
				If <strong>{email}</strong> can be used, a mail with a link {what} is on its way. The link works once. Look in
				the spam folder if it does not come.
			</p>
			{mail?.link && (
				<Notice kind="warn">
					<div className="stack">
						<span>This is a demo without a mail server. The mail would say: “{mail.subject}”.</span>
						<Button component="a" href={mail.link} variant="default">
							Open the link of the mail
						</Button>
					</div>
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
				// No outbox here: mails are really sent.
				clearInterval(timer);
			}
		}, ASK_EVERY_MS);
		return () => clearInterval(timer);
	}, [email, mail]);
	return mail;
}
