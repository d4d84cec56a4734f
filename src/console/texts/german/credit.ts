export const credit = {
	Stopped: "Angehalten",
	"Waits for you": "Wartet auf Sie",
	"Nothing was charged. Until the payment is confirmed no further one is tried.":
		"Es wurde nichts abgebucht. Bis die Zahlung bestätigt ist, wird keine weitere versucht.",
	"Nothing is tried until the settings are saved again.":
		"Es wird nichts versucht, bis die Einstellungen wieder gespeichert werden.",
	"Confirm the payment": "Zahlung bestätigen",
	"With a saved card credit is bought by itself when it falls below an amount that you set.":
		"Mit einer hinterlegten Karte wird von selbst aufgeladen, sobald das Guthaben unter einen Betrag fällt, den Sie festlegen.",
	"Card: {brand} ending in {lastFour}, good until {expiry}":
		"Karte: {brand} mit den letzten Ziffern {lastFour}, gültig bis {expiry}",
	"The card is being read from Stripe. It appears here by itself.":
		"Die Karte wird von Stripe gelesen. Sie erscheint hier von selbst.",
	"Remove the card": "Karte entfernen",
	"Save a card": "Karte hinterlegen",
	"Use another card": "Andere Karte verwenden",
	"When the balance is below, in USD": "Wenn der Saldo darunter liegt, in USD",
	"Buy, in USD": "Aufladen um, in USD",
	"At most in a calendar month, in USD": "Höchstens im Kalendermonat, in USD",
	"Bought automatically this month: {bought} of {most}": "In diesem Monat automatisch aufgeladen: {bought} von {most}",
	"By switching this on you allow {service} to charge this card with these amounts, each time that the balance falls below the first of them, until you switch it off. If it is below now, the card is charged at once. Credit is there when the payment has cleared.":
		"Mit dem Einschalten erlauben Sie {service}, diese Karte mit diesen Beträgen zu belasten, jedes Mal, wenn der Saldo unter den ersten von ihnen fällt, bis Sie es ausschalten. Liegt er jetzt darunter, wird die Karte sofort belastet. Das Guthaben ist da, sobald die Zahlung eingegangen ist.",
	"Switch off": "Ausschalten",
	"Switch on": "Einschalten",
	"A top-up is at least {least}.": "Eine Aufladung beträgt mindestens {least}.",
	"Buy at least as much as it is bought below.": "Laden Sie mindestens so viel auf, wie die Grenze beträgt.",
	"The month's most covers one top-up at least.": "Die Grenze des Monats reicht mindestens für eine Aufladung.",
	"Being paid": "Wird bezahlt",
	Paid: "Bezahlt",
	Declined: "Abgelehnt",
	"Not charged": "Nicht belastet",
	"Low-balance alert": "Warnung bei niedrigem Guthaben",
	"No alert is set. Requests are refused with 402 when the credit runs out.":
		"Keine Warnung ist eingerichtet. Ist das Guthaben aufgebraucht, werden Anfragen mit 402 abgewiesen.",
	"Owners, admins and billing members get a mail when the balance falls below {threshold}.":
		"Inhaber, Administratoren und Mitglieder für Abrechnung erhalten eine E-Mail, sobald das Guthaben unter {threshold} fällt.",
	"Mail below, in USD": "E-Mail unterhalb von, in USD",
	"Last sent {lastSent}": "Zuletzt gesendet {lastSent}",
	"Being closed": "Wird abgeschlossen",
	"{month} as {kind}": "{month} als {kind}",
	Statements: "Auszüge",
	"No month yet.": "Noch kein Monat.",
	Month: "Monat",
	Files: "Dateien",
	"Months in UTC. Each is closed within hours of its end, and its figures never change then. Your company, address and VAT ID are in the <link>settings</link>.":
		"Monate in UTC. Jeder wird binnen Stunden nach seinem Ende abgeschlossen, und seine Zahlen ändern sich danach nie. Unternehmen, Anschrift und USt-IdNr. stehen in den <link>Einstellungen</link>.",
	"A top-up is at most {most}.": "Eine Aufladung beträgt höchstens {most}.",
	"Recorded as pending. Now make the transfer:": "Als ausstehend gespeichert. Überweisen Sie jetzt:",
	"Give exactly this reference, so that the payment can be found. An operator checks that it has arrived and confirms it with the bank's transaction reference; the credit then appears on this page by itself, with a receipt.":
		"Geben Sie genau diesen Verwendungszweck an, damit die Zahlung zugeordnet werden kann. Der Betreiber prüft den Eingang und bestätigt ihn mit der Buchungsreferenz der Bank; danach erscheint das Guthaben von selbst auf dieser Seite, mit einem Beleg.",
	"Make another": "Weitere Aufladung",
	"Common amounts": "Gängige Beträge",
	"From {topUpMin} to {topUpMax} at a time": "Von {topUpMin} bis {topUpMax} auf einmal",
	"You pay on Stripe's page. The credit appears when Stripe has confirmed the payment.":
		"Sie bezahlen auf der Seite von Stripe. Das Guthaben erscheint, sobald Stripe die Zahlung bestätigt hat.",
	"You get a reference for the transfer. The credit appears when an operator has seen the payment.":
		"Sie erhalten einen Verwendungszweck für die Überweisung. Das Guthaben erscheint, sobald der Betreiber die Zahlung gesehen hat.",
	"Pay by card": "Mit Karte bezahlen",
	"Get the reference": "Verwendungszweck anfordern",
	"The operator of the service sends you the details of the bank account.":
		"Die Bankverbindung erhalten Sie vom Betreiber des Dienstes.",
	"Bank details": "Bankverbindung",
	"Copy the bank details": "Bankverbindung kopieren",
	"No movements yet.": "Noch keine Bewegungen.",
	"Each top-up, refund and day of usage will be a line here.":
		"Jede Aufladung, jede Erstattung und jeder Tag Verbrauch wird hier eine Zeile sein.",
	"{count} requests": { one: "{count} Anfrage", other: "{count} Anfragen" },
	"What is held?": "Was ist reserviert?",
	"available and held": "verfügbar und reserviert",
	"A running request holds the most that it can cost. When it ends it is charged what it used and the rest is free again.":
		"Eine laufende Anfrage reserviert, was sie höchstens kosten kann. Endet sie, wird ihr tatsächlicher Verbrauch berechnet, und der Rest ist wieder frei.",
	"{heldByAbsentInstances} is held for an instance of the service that is not running. It comes back when that instance's books are read.":
		"{heldByAbsentInstances} sind für eine Instanz des Dienstes reserviert, die nicht läuft. Der Betrag kommt zurück, sobald die Bücher dieser Instanz gelesen sind.",
	"Running requests": "Laufende Anfragen",
	"No request is running.": "Keine Anfrage läuft.",
	"No top-ups yet.": "Noch keine Aufladungen.",
	"A top-up and its verification can be followed here.":
		"Hier lässt sich eine Aufladung bis zu ihrer Bestätigung verfolgen.",
	"Pending verification": "Wartet auf Bestätigung",
	Receipt: "Beleg",
	"The payment is verified: {amount} is in your credit.":
		"Die Zahlung ist bestätigt: {amount} sind Ihrem Guthaben gutgeschrieben.",
	"The payment was not made. No credit was given.": "Die Zahlung ist nicht erfolgt. Es wurde nichts gutgeschrieben.",
	"The payment is {state}.": "Die Zahlung ist {state}.",
	"The payment was made. The credit appears here as soon as it is verified, usually within a minute.":
		"Die Zahlung ist erfolgt. Das Guthaben erscheint hier, sobald sie bestätigt ist, meist innerhalb einer Minute.",
	"The payment was not made. Nothing was charged.": "Die Zahlung ist nicht erfolgt. Es wurde nichts abgebucht.",
	"The card was declined.": "Die Karte wurde abgelehnt.",
	"The card was declined: its funds or its limit do not cover the payment.":
		"Die Karte wurde abgelehnt: Deckung oder Limit reichen für die Zahlung nicht aus.",
	"The card has expired.": "Die Karte ist abgelaufen.",
	"The settings, the card or the account's state were changed before anything was charged.":
		"Einstellungen, Karte oder Kontostatus wurden geändert, bevor etwas abgebucht wurde.",
	"The bank has not decided about a payment for two days. No other is tried until it has.":
		"Die Bank hat seit zwei Tagen nicht über eine Zahlung entschieden. Bis dahin wird keine weitere versucht.",
	"The card is not known to the payment service any more.": "Der Zahlungsdienst kennt die Karte nicht mehr.",
	"The bank wants the payment to be confirmed by its cardholder.":
		"Die Bank verlangt, dass der Karteninhaber die Zahlung bestätigt.",
	"The payment service could not be reached. Nothing was charged.":
		"Der Zahlungsdienst war nicht zu erreichen. Es wurde nichts abgebucht.",
	"A card payment of this account was refunded.": "Eine Kartenzahlung dieses Kontos wurde erstattet.",
	"A card payment of this account is disputed.": "Eine Kartenzahlung dieses Kontos wird angefochten.",
	"The card was charged and no credit could be given for it. The operator has been alarmed.":
		"Die Karte wurde belastet, und es konnte nichts gutgeschrieben werden. Der Betreiber ist alarmiert.",
} as const;
