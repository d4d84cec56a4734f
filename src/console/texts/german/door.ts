export const door = {
	"No account": "Kein Konto",
	"You are not a member of any account.": "Sie sind in keinem Konto Mitglied.",
	"Go to the operator pages": "Zu den Seiten des Betriebs",
	"Keys, credit and usage belong to an account. Ask an owner to invite {email}, then open the link in the mail.":
		"Schlüssel, Guthaben und Verbrauch gehören zu einem Konto. Bitten Sie einen Inhaber, {email} einzuladen, und öffnen Sie dann den Link in der E-Mail.",
	"Open models behind the client you already use": "Offene Modelle hinter dem Client, den Sie schon benutzen",
	"Change the base address, the key and the model. Credit is prepaid, each request is charged by its actual tokens, and a key can never spend more than its cap.":
		"Ändern Sie Basisadresse, Schlüssel und Modell. Guthaben wird im Voraus bezahlt, jede Anfrage nach ihren tatsächlichen Token berechnet, und ein Schlüssel kann nie mehr ausgeben als seine Obergrenze.",
	"Hello!": "Hallo!",
	"What would it cost?": "Was würde es kosten?",
	"Models and rates": "Modelle und Preise",
	"All details": "Alle Einzelheiten",
	"How access works": "So funktioniert der Zugang",
	"<strong>Prepaid</strong>Top-ups start at {topUpMin}. What is left stays usable to the last cent.":
		"<strong>Im Voraus bezahlt</strong>Aufladungen beginnen bei {topUpMin}. Was übrig ist, bleibt bis zum letzten Cent nutzbar.",
	"<strong>Exact</strong>Every request has a line in the log with its tokens, rate card and cost. What is held and what is spent are shown apart.":
		"<strong>Genau</strong>Jede Anfrage steht im Protokoll mit Token, Preisliste und Kosten. Reserviertes und Ausgegebenes werden getrennt gezeigt.",
	"<strong>Bounded</strong>A key has an optional lifetime cap and a list of models. Nothing goes past the cap, at any load.":
		"<strong>Begrenzt</strong>Ein Schlüssel kann eine Obergrenze und eine Liste von Modellen haben. Nichts überschreitet die Obergrenze, bei keiner Last.",
	"<strong>Revocable</strong>A revoked key stops on all instances, and the page says since when.":
		"<strong>Widerrufbar</strong>Ein widerrufener Schlüssel gilt auf keiner Instanz mehr, und die Seite sagt, seit wann.",
	"I agree to the {link}": "Ich stimme den {link} zu",
	"terms of {name}": "Nutzungsbedingungen von {name}",
	"Terms of service": "Nutzungsbedingungen",
	"Go on": "Fortfahren",
	"No such page": "Seite nicht gefunden",
	"There is nothing at this address.": "Unter dieser Adresse gibt es nichts.",
	"Go to the start": "Zur Startseite",
	"The address may be mistyped, or what it named is not open to you.":
		"Vielleicht ist die Adresse vertippt, oder was sie nannte, ist für Sie nicht zugänglich.",
	"Not for your role": "Nicht für Ihre Rolle",
	"Your role in {name} is {role}.": "Ihre Rolle in {name} ist {role}.",
	"It may not {says}. An owner or admin of the account can give you another role.":
		"Sie erlaubt nicht: {says}. Ein Inhaber oder Administrator des Kontos kann Ihnen eine andere Rolle geben.",
	"By your company's sign-in": "Über die Anmeldung Ihres Unternehmens",
	"{name} is opened by its company's sign-in alone.":
		"{name} lässt sich nur über die Anmeldung des Unternehmens öffnen.",
	"Sign out, and in with your company": "Abmelden und über das Unternehmen anmelden",
	"What is your own stands in the <link>settings</link> as before.":
		"Was nur Sie betrifft, finden Sie weiterhin in den <link>Einstellungen</link>.",
	"Address verified": "Adresse bestätigt",
	"The address is verified. Sign in to go on.": "Die Adresse ist bestätigt. Melden Sie sich an, um fortzufahren.",
	"The link does not work": "Der Link funktioniert nicht",
	"It was used before or is too old. Sign in if you confirmed your address already.":
		"Er wurde schon benutzt oder ist zu alt. Melden Sie sich an, falls Sie Ihre Adresse bereits bestätigt haben.",
	"<link>Sign up again</link> for a new one.": "<link>Registrieren Sie sich erneut</link>, um einen neuen zu erhalten.",
	"Confirm your address": "Bestätigen Sie Ihre Adresse",
	"Is this your address, and did you sign up with it?": "Ist das Ihre Adresse, und haben Sie sich mit ihr registriert?",
	"Confirm the address": "Adresse bestätigen",
	"Choose a password": "Wählen Sie ein Passwort",
	"This is another browser than the one that signed up. Choose the password here, and sign in with it.":
		"Registriert haben Sie sich in einem anderen Browser. Wählen Sie das Passwort hier und melden Sie sich damit an.",
	"Of you or your company": "Ihr Name oder der Ihres Unternehmens",
	"At least {count} characters": "Mindestens {count} Zeichen",
	"Reset the password": "Passwort zurücksetzen",
	"Back to sign in": "Zurück zur Anmeldung",
	"The link was used before or is too old. Ask for a new one.":
		"Der Link wurde schon benutzt oder ist zu alt. Fordern Sie einen neuen an.",
	"Send a link": "Link senden",
	"Password changed": "Passwort geändert",
	"All other sessions were ended. Sign in with the new password.":
		"Alle anderen Sitzungen wurden beendet. Melden Sie sich mit dem neuen Passwort an.",
	"Set a new password": "Neues Passwort festlegen",
	Invitation: "Einladung",
	"You were invited to an account. You are signed in as {email}; the invitation works for the address that it was sent to.":
		"Sie wurden zu einem Konto eingeladen. Angemeldet sind Sie als {email}; die Einladung gilt für die Adresse, an die sie gesendet wurde.",
	"Accept the invitation": "Einladung annehmen",
	"New accounts are made by invitation here. Ask the operator of this service.":
		"Neue Konten gibt es hier auf Einladung. Wenden Sie sich an den Betreiber dieses Dienstes.",
	"Check your mail": "Sehen Sie in Ihr Postfach",
	"Signed up before? <link>Sign in</link>": "Schon registriert? <link>Anmelden</link>",
	"No account yet? <link>Sign up</link>": "Noch kein Konto? <link>Registrieren</link>",
	"Sign in with your company": "Über Ihr Unternehmen anmelden",
	"Sign in with a passkey": "Mit einem Passkey anmelden",
	"This sign-in was begun too long ago or in another browser. Begin again.":
		"Diese Anmeldung wurde vor zu langer Zeit oder in einem anderen Browser begonnen. Beginnen Sie von vorn.",
	"Your company's sign-in did not say who you are in a way that can be trusted. Ask who looks after it.":
		"Die Anmeldung Ihres Unternehmens hat nicht verlässlich mitgeteilt, wer Sie sind. Wenden Sie sich an die dafür zuständige Person.",
	"Your company's sign-in names an address that is not of the company's own domain.":
		"Die Anmeldung Ihres Unternehmens nennt eine Adresse, die nicht zur Domain des Unternehmens gehört.",
	"Your company's sign-in does not say that your address is verified.":
		"Die Anmeldung Ihres Unternehmens bestätigt nicht, dass Ihre Adresse geprüft ist.",
	"This address belonged to somebody else of your company before. Ask an owner of the account.":
		"Diese Adresse gehörte früher einer anderen Person Ihres Unternehmens. Wenden Sie sich an einen Inhaber des Kontos.",
	"Somebody signed up with this address and never proved it. Try again tomorrow.":
		"Jemand hat sich mit dieser Adresse registriert und sie nie bestätigt. Versuchen Sie es morgen erneut.",
	"Operators of the service sign in with their password.": "Betreiber des Dienstes melden sich mit ihrem Passwort an.",
	"Your company gives you no role in its account.": "Ihr Unternehmen hat Ihnen in seinem Konto keine Rolle gegeben.",
	"Your address at the company": "Ihre Adresse im Unternehmen",
	"Use a password": "Passwort verwenden",
	"Stay signed in": "Angemeldet bleiben",
	"Forgot it?": "Vergessen?",
	"Signed up a moment ago? Open the link in the mail first, or sign up again for a new one.":
		"Gerade erst registriert? Öffnen Sie zuerst den Link in der E-Mail, oder registrieren Sie sich erneut, um einen neuen zu erhalten.",
	"Continue with GitHub": "Weiter mit GitHub",
	"Continue with Google": "Weiter mit Google",
	"Backup code": "Ersatzcode",
	"Code of your authenticator app": "Code Ihrer Authentifizierungs-App",
	"Do not ask on this device again": "Auf diesem Gerät nicht mehr fragen",
	"Use the authenticator app": "Authentifizierungs-App verwenden",
	"Use a backup code": "Ersatzcode verwenden",
} as const;
