import { Button, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { api } from "../api.ts";
import { authApi } from "../auth-api.ts";
import { ApiError } from "../http.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { EmailField, NameField, NewPasswordField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { MailSent } from "../parts/mail-sent.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { PageWaiting } from "../parts/waiting.tsx";
import { type Action, useAction } from "../resource.ts";
import { Link, navigate, safeNext, usePlace } from "../router.tsx";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";

/** Pages that links in mails lead to: verify an address, reset a password, accept an invitation. */

/** Opening the link changes nothing, since mail scanners open links too: the user must press the button. */
export function VerifyPage() {
	const { me, refresh } = useSession();
	const { query } = usePlace();
	const next = safeNext(query.get("next"));
	const token = query.get("token") ?? "";
	const [step, setStep] = useState<"confirm" | "password" | "elsewhere" | "here">("confirm");
	const confirm = useAction(async (anew?: { name: string; newPassword: string }) => {
		try {
			const { signedIn } = await authApi.verifyEmail(token, anew);
			setStep(signedIn ? "here" : "elsewhere");
			if (signedIn) await refresh();
		} catch (error) {
			if (!(error instanceof ApiError && error.code === "PASSWORD_REQUIRED")) throw error;
			setStep("password");
		}
	});
	useEffect(() => {
		if (me && step === "here") navigate(next, { replace: true });
	}, [me, step, next]);

	if (step === "here") return <PageWaiting />;
	if (step === "elsewhere") {
		return (
			<AuthLayout title={t("Address verified")}>
				<Notice kind="ok">{t("The address is verified. Sign in to go on.")}</Notice>
				<Button component={Link} to={`/sign-in?next=${encodeURIComponent(next)}`}>
					{t("Sign in")}
				</Button>
			</AuthLayout>
		);
	}
	if (token === "" || confirm.error?.code === "INVALID_TOKEN") {
		return (
			<AuthLayout title={t("The link does not work")}>
				<Notice kind="warn">
					{t("It was used before or is too old. Sign in if you confirmed your address already.")}
				</Notice>
				<Button component={Link} to="/sign-in">
					{t("Sign in")}
				</Button>
				<p>
					{rich("<link>Sign up again</link> for a new one.", { link: (inner) => <Link to="/sign-up">{inner}</Link> })}
				</p>
			</AuthLayout>
		);
	}
	if (step === "password") return <FirstPassword confirm={confirm} />;
	return (
		<AuthLayout title={t("Confirm your address")}>
			<p>{t("Is this your address, and did you sign up with it?")}</p>
			{confirm.error && <Problem error={confirm.error} />}
			<Button loading={confirm.busy} onClick={() => void confirm.run()}>
				{t("Confirm the address")}
			</Button>
		</AuthLayout>
	);
}

/** The person who signed up with this address in another browser may be a stranger: that password is discarded. */
function FirstPassword({ confirm }: { confirm: Action<[anew: { name: string; newPassword: string }], void> }) {
	const [name, setName] = useState("");
	const [password, setPassword] = useState("");
	return (
		<AuthLayout title={t("Choose a password")}>
			<p>{t("This is another browser than the one that signed up. Choose the password here, and sign in with it.")}</p>
			<Form
				onSubmit={() => void confirm.run({ name: name.trim(), newPassword: password })}
				error={confirm.error}
				end={
					<Button type="submit" loading={confirm.busy}>
						{t("Confirm the address")}
					</Button>
				}
			>
				<NameField value={name} onChange={setName} />
				<NewPasswordField value={password} onChange={setPassword} />
			</Form>
		</AuthLayout>
	);
}

export function ResetPage() {
	const { query } = usePlace();
	const token = query.get("token");
	if (token && !query.has("error")) return <NewPassword token={token} />;
	return (
		<AuthLayout title={t("Reset the password")} below={<Link to="/sign-in">{t("Back to sign in")}</Link>}>
			{query.has("error") && (
				<Notice kind="warn">{t("The link was used before or is too old. Ask for a new one.")}</Notice>
			)}
			<AddressForm label={t("Send a link")} what="reset" send={(email) => authApi.requestReset(email)} />
		</AuthLayout>
	);
}

function AddressForm(props: { label: string; what: "verify" | "reset"; send: (email: string) => Promise<unknown> }) {
	const [email, setEmail] = useState("");
	const [sentTo, setSentTo] = useState<string>();
	const send = useAction(async () => {
		await props.send(email.trim());
		setSentTo(email.trim());
	});
	if (sentTo) return <MailSent email={sentTo} what={props.what} />;
	return (
		<Form
			onSubmit={send.run}
			error={send.error}
			end={
				<Button type="submit" loading={send.busy}>
					{props.label}
				</Button>
			}
		>
			<EmailField autoComplete="username" value={email} onChange={setEmail} />
		</Form>
	);
}

function NewPassword({ token }: { token: string }) {
	const [password, setPassword] = useState("");
	const [done, setDone] = useState(false);
	const reset = useAction(async () => {
		await authApi.resetPassword(password, token);
		setDone(true);
	});
	if (done) {
		return (
			<AuthLayout title={t("Password changed")}>
				<Notice kind="ok">{t("All other sessions were ended. Sign in with the new password.")}</Notice>
				<Button component={Link} to="/sign-in">
					{t("Sign in")}
				</Button>
			</AuthLayout>
		);
	}
	return (
		<AuthLayout title={t("Set a new password")}>
			<Form
				onSubmit={reset.run}
				error={reset.error}
				end={
					<Button type="submit" loading={reset.busy}>
						{t("Change the password")}
					</Button>
				}
			>
				<NewPasswordField label={t("New password")} value={password} onChange={setPassword} />
			</Form>
		</AuthLayout>
	);
}

export function InvitePage() {
	const { me, chooseAccount } = useSession();
	const { query } = usePlace();
	const accept = useAction(async () => {
		const { accountId } = await api.acceptInvitation(query.get("token") ?? "");
		await chooseAccount(accountId);
		navigate("/overview", { replace: true });
	});
	return (
		<Page title={t("Invitation")} narrow>
			<Panel>
				<Stack gap={14}>
					<p>
						{rich(
							"You were invited to an account. You are signed in as {email}; the invitation works for the address that it was sent to.",
							{ email: <strong>{me?.user.email}</strong> },
						)}
					</p>
					{accept.error && <Problem error={accept.error} />}
					<div>
						<Button onClick={() => void accept.run()} loading={accept.busy}>
							{t("Accept the invitation")}
						</Button>
					</div>
				</Stack>
			</Panel>
		</Page>
	);
}
