import { Button, Stack } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";
import { api, type OutboxMail } from "../api.ts";
import { ApiError } from "../http.ts";
import { pageAfterSignIn } from "../navigation.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { EmailField, NameField, NewPasswordField } from "../parts/fields.tsx";
import { ActButton, AuthForm } from "../parts/form.tsx";
import { ErrorMessage, Notice, Page, PageWaiting, Panel } from "../parts/page.tsx";
import { type Action, useAction } from "../resource.ts";
import { Link, linkRenderer, navigate, safeNextPath, useRoute } from "../router.tsx";
import { authApi, useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";

/** Pages that mailed links open: verify an address, reset a password, accept an invitation. */

function SignInNext(props: { title: string; kind: "ok" | "warn"; text: string; to?: string; children?: ReactNode }) {
	return (
		<AuthLayout title={props.title}>
			<Notice kind={props.kind}>{props.text}</Notice>
			<ActButton size="sm" look="main" to={props.to ?? "/sign-in"} label={t("Sign in")} />
			{props.children}
		</AuthLayout>
	);
}

/** Opening the link changes nothing, because mail scanners open links too: the user must press the button. */
export function VerifyPage() {
	const { me, refresh } = useSession();
	const { query } = useRoute();
	const next = safeNextPath(query.get("next"));
	const token = query.get("token") ?? "";
	const [step, setStep] = useState<"confirm" | "password" | "elsewhere" | "here">("confirm");
	const confirm = useAction(async (chosen?: { name: string; newPassword: string }) => {
		try {
			const { signedIn } = await authApi.verifyEmail(token, chosen);
			setStep(signedIn ? "here" : "elsewhere");
			if (signedIn) await refresh();
		} catch (error) {
			if (!(error instanceof ApiError && error.code === "PASSWORD_REQUIRED")) throw error;
			setStep("password");
		}
	});
	useEffect(() => {
		if (me && step === "here") navigate(pageAfterSignIn(next, me), { replace: true });
	}, [me, step, next]);

	if (step === "here") return <PageWaiting />;
	if (step === "elsewhere") {
		return (
			<SignInNext
				title={t("Address verified")}
				kind="ok"
				text={t("Your address is verified. Sign in to continue.")}
				to={`/sign-in?next=${encodeURIComponent(next)}`}
			/>
		);
	}
	if (token === "" || confirm.error?.code === "INVALID_TOKEN") {
		return (
			<SignInNext
				title={t("This link is invalid")}
				kind="warn"
				text={t("The link was already used or has expired. If your address is verified, sign in.")}
			>
				<p>{rich("<link>Sign up again</link> for a new one.", { link: linkRenderer("/sign-up") })}</p>
			</SignInNext>
		);
	}
	if (step === "password") return <FirstPassword confirm={confirm} />;
	return (
		<AuthLayout title={t("Confirm your address")}>
			<p>{t("Confirm that you signed up with this address.")}</p>
			{confirm.error && <ErrorMessage error={confirm.error} />}
			<ActButton size="sm" look="main" label={t("Confirm the address")} action={confirm} />
		</AuthLayout>
	);
}

/** Asks for a new password, because a different browser signed up: its password may be a stranger's choice. */
function FirstPassword({ confirm }: { confirm: Action<[chosen?: { name: string; newPassword: string }], void> }) {
	const [name, setName] = useState("");
	const [password, setPassword] = useState("");
	return (
		<AuthLayout title={t("Choose a password")}>
			<p>{t("You signed up in another browser. To continue in this browser, choose a new password.")}</p>
			<AuthForm
				action={confirm}
				act={t("Confirm the address")}
				onSubmit={() => void confirm.run({ name: name.trim(), newPassword: password })}
			>
				<NameField value={name} onChange={setName} />
				<NewPasswordField value={password} onChange={setPassword} />
			</AuthForm>
		</AuthLayout>
	);
}

export function ResetPage() {
	const { query } = useRoute();
	const token = query.get("token");
	return token && !query.has("error") ? <NewPassword token={token} /> : <ResetLink isOld={query.has("error")} />;
}

function ResetLink({ isOld }: { isOld: boolean }) {
	const [email, setEmail] = useState("");
	const [sentTo, setSentTo] = useState<string>();
	const send = useAction(
		() => authApi.requestReset(email.trim()),
		() => setSentTo(email.trim()),
	);
	return (
		<AuthLayout title={t("Reset the password")} below={<Link to="/sign-in">{t("Back to sign in")}</Link>}>
			{isOld && <Notice kind="warn">{t("The link was already used or has expired. Request a new one.")}</Notice>}
			{sentTo ? (
				<MailSent email={sentTo} what="reset" />
			) : (
				<AuthForm action={send} act={t("Send a link")}>
					<EmailField autoComplete="username" value={email} onChange={setEmail} />
				</AuthForm>
			)}
		</AuthLayout>
	);
}

function NewPassword({ token }: { token: string }) {
	const [password, setPassword] = useState("");
	const [done, setDone] = useState(false);
	const reset = useAction(
		() => authApi.resetPassword(password, token),
		() => setDone(true),
	);
	if (done) {
		return (
			<SignInNext
				title={t("Password changed")}
				kind="ok"
				text={t("All other sessions were ended. Sign in with the new password.")}
			/>
		);
	}
	return (
		<AuthLayout title={t("Set a new password")}>
			<AuthForm action={reset} act={t("Change the password")}>
				<NewPasswordField label={t("New password")} value={password} onChange={setPassword} />
			</AuthForm>
		</AuthLayout>
	);
}

export function InvitePage() {
	const { me, chooseAccount } = useSession();
	const { query } = useRoute();
	const accept = useAction(async () => {
		await chooseAccount((await api.acceptInvitation(query.get("token") ?? "")).accountId);
		navigate("/", { replace: true });
	});
	return (
		<Page title={t("Invitation")} narrow>
			<Panel>
				<Stack gap={14} align="flex-start">
					<p>
						{rich(
							"You were invited to an account. You are signed in as {email}; the invitation works for the address that it was sent to.",
							{ email: <strong>{me?.user.email}</strong> },
						)}
					</p>
					{accept.error && <ErrorMessage error={accept.error} />}
					<ActButton size="sm" look="main" label={t("Accept the invitation")} action={accept} />
				</Stack>
			</Panel>
		</Page>
	);
}

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
	const mail = useOutbox(useSession().config.demo ? email : null);
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
