"""What can happen: every plan says the sentences of one text to a Story (make_text.py).

Three sizes. A moment is three or four sentences about one thing, full of names: a model learns from
these to look back for a name. A talk is a question, its answer and what follows. A story has eight
to twelve sentences with a beginning, a trouble and an end. A plan sets the fields that its wordings
need beyond those that Story.cast has drawn.
"""

import words


def meet(s):
    """Introduces character a."""
    s.say(
        "Once upon a time, there was a {trait} {a.kind} named {a.name}.",
        "Once upon a time, there was a {trait} {a.kind} called {a.name}.",
        "Once upon a time, a {trait} {a.kind} named {a.name} lived near the {place}.",
        "There was once a {trait} {a.kind} named {a.name}.",
        "Long ago, there lived a {trait} {a.kind} named {a.name}.",
        "This is the story of a {trait} {a.kind} named {a.name}.",
        "{a.name} was a {trait} {a.kind}.",
        "{a.name} was a {trait} {a.kind} who lived near the {place}.",
        "In a small house near the {place} lived a {trait} {a.kind} named {a.name}.",
    )


def go(s):
    """Brings a to the place."""
    s.say(
        "One day, {a.name} went to the {place}.",
        "One morning, {a.name} went to the {place} to play.",
        "One sunny day, {a.name} walked to the {place}.",
        "One day, {a.he} went to the {place} with {a.his} {helper}.",
        "One afternoon, {a.he} ran all the way to the {place}.",
    )
    s.maybe(
        "{a.He} saw {sight}.",
        "The sun was warm and {a.he} saw {sight}.",
        "There {a.he} saw {sight} and smiled.",
    )


def meet_both(s):
    """Introduces a and b as friends."""
    s.say(
        "{a.name} and {b.name} were good friends.",
        "{a.name} and {b.name} were best friends.",
        "Once upon a time, there were two friends named {a.name} and {b.name}.",
        "Once upon a time, a {a.kind} named {a.name} had a friend called {b.name}.",
        "{a.name} the {a.kind} and {b.name} the {b.kind} lived near the {place}.",
    )


def end_happy(s):
    """Closes a story of one."""
    s.say(
        "{a.name} was very happy.",
        "{a.He} smiled and felt very happy.",
        "{a.name} went home with a big smile.",
        "It was the best day of all.",
        "That night, {a.name} slept very well.",
        "{a.name} hugged {a.his} {helper} and laughed.",
    )


def end_both(s):
    """Closes a story of two."""
    s.say(
        "They laughed and played until the sun went down.",
        "From that day on, they were best friends.",
        "They were both very happy.",
        "Then they went home together.",
        "{a.name} and {b.name} smiled at each other.",
        "They had so much fun that day.",
    )


def lost_thing(s):
    """a loses a toy; b finds it."""
    meet(s)
    s.say(
        "{a.He} had a {colour} {toy} that {a.he} loved very much.",
        "{a.He} loved {a.his} {colour} {toy} more than anything.",
        "{a.His} favorite thing was a {colour} {toy}.",
    )
    go(s)
    s.say(
        "But then {a.he} could not find {a.his} {toy}.",
        "Soon {a.his} {toy} was gone.",
        "When it was time to go home, the {colour} {toy} was not there.",
    )
    s.say(
        "{a.name} was very sad and began to cry.",
        "{a.name} felt sad.",
        "{a.name} looked and looked.",
    )
    s.maybe("{a.He} looked {wrong}, but it was not there.")
    s.say(
        'A {b.kind} named {b.name} asked, "What is wrong?"',
        'Then {b.name} the {b.kind} came by and asked, "Can I help you?"',
    )
    s.say('"I lost my {toy}," said {a.name}.', '"I cannot find my {colour} {toy}," {a.name} said.')
    s.say(
        "They looked together and found the {toy} {spot}.",
        "{b.name} looked {spot} and found the {colour} {toy}.",
    )
    s.say('"Thank you, {b.name}!" said {a.name}.', '"You are a good friend," said {a.name}.')
    end_both(s)


def share(s):
    """Both want the same thing and take turns."""
    s.set(toy=s.pick(words.SHARED))
    meet_both(s)
    s.say("One day, they went to the {place}.", "One day, they played {at}.")
    s.say(
        "They saw a {colour} {toy}.",
        "There was only one {colour} {toy}.",
        "{a.name} had a new {colour} {toy}.",
    )
    s.say(
        '"I want the {toy}!" said {b.name}.',
        '"It is my turn!" said {b.name}.',
        '"Please give me the {toy}," said {b.name}.',
    )
    s.say('"No, it is mine!" said {a.name}.', '"No, I want it too!" said {a.name}.')
    s.say(
        "{b.name} was sad and began to cry.",
        "{b.name} felt angry and sat down {spot}.",
        "They were both angry and did not talk.",
    )
    s.say(
        "{a.name} felt bad.",
        "Then {a.name} thought about it.",
        "{a.name} did not like to see that.",
    )
    s.say(
        '"I am sorry," said {a.name}. "We can share the {toy}."',
        '"Let us take turns," said {a.name}. "You can go first."',
    )
    s.say('"Thank you," said {b.name}.', "{b.name} smiled and said yes.")
    s.say("They took turns with the {colour} {toy}.", "So they played with the {toy} together.")
    end_both(s)


def rain(s):
    """A picnic is stopped by rain, and goes on elsewhere."""
    meet_both(s)
    s.say("One day, they had a picnic {at}.", "One sunny day, they took a basket to the {place}.")
    s.say("They had {food} and cold milk.", "The basket was full of {food}.")
    s.maybe("They sat down and saw {sight}.", "They ate and talked and saw {sight}.")
    s.say(
        "Then the sky turned dark and it began to rain.",
        "Soon big drops of rain began to fall.",
        "Then there was a loud clap of thunder.",
    )
    s.say('"Oh no, we will get wet!" said {a.name}.', '"Our {food} will get wet!" said {a.name}.')
    s.say(
        '"Quick, let us run to the barn!" said {b.name}.',
        '"Look, we can hide in that cave!" said {b.name}.',
        '"Come, my house is not far!" said {b.name}.',
    )
    s.say("They ran as fast as they could.", "They took the basket and ran.")
    s.say(
        "Inside it was warm and dry, and they ate all the {food}.",
        "It was dry there, so they ate the {food} and told stories.",
    )
    s.say("When the rain stopped, they saw a rainbow.", "Then the sun came out again.")
    end_both(s)


def make(s):
    """a makes something with a helper."""
    craft = s.pick(words.CRAFTS)
    s.set(
        thing=craft.thing,
        parts=craft.parts,
        first=craft.steps[0],
        second=craft.steps[1],
        use=craft.use,
    )
    meet(s)
    s.say(
        "One day, {a.name} wanted to make a {thing}.",
        "One morning, {a.he} had an idea. {a.He} wanted to make a {thing}.",
        'One day, {a.his} {helper} said, "Let us make a {thing}."',
    )
    s.say('"What do we need?" asked {a.name}.', '"How do we make it?" {a.he} asked.')
    s.say(
        '"We need {parts}," said {a.his} {helper}.',
        'The {helper} smiled and said, "We need {parts}."',
    )
    s.say("So they got {parts}.", "They found {parts} and began to work.")
    s.say("First they {first}.", "First, {a.name} and {a.his} {helper} {first}.")
    s.say("Then they {second}.", "After that, they {second}.")
    s.maybe(
        "It took a long time, but {a.name} did not give up.", "It was hard work, but it was fun."
    )
    s.say("At last the {thing} was ready.", "Soon the {thing} was done.")
    s.say('"It is the best {thing} ever!" said {a.name}.', '"Look what we made!" said {a.name}.')
    s.say("They {use}.", "Then they {use}.")
    end_happy(s)


def brave(s):
    """a is afraid of something and dares it."""
    fear = s.pick(words.FEARS)
    s.set(deed=fear.deed, where=fear.at, why=fear.why, advice=fear.advice, end=fear.end)
    meet(s)
    s.say("{a.He} was afraid to {deed}.", "{a.He} wanted to {deed}, but {a.he} was scared.")
    s.say("{why}.", "{why}, and {a.name} felt small.")
    s.say(
        "One day, {b.name} the {b.kind} was {where} too.",
        "One day, {a.name} was {where} with {b.name} the {b.kind}.",
    )
    s.say(
        '"Why do you not {deed}?" asked {b.name}.',
        '"Do you want to {deed} with me?" asked {b.name}.',
    )
    s.say('"I am scared," said {a.name}.', '"I am too afraid," {a.name} said in a small voice.')
    s.say(
        '"I will help you," said {b.name}. "{advice}."',
        '"Do not worry," said {b.name}. "{advice}."',
    )
    s.say(
        "{a.name} took a deep breath and tried.",
        "{a.name} closed {a.his} eyes and tried.",
        "So {a.name} tried again and again.",
    )
    s.say("Soon {a.he} was not afraid, and {end}.", "It worked, and {end}.")
    s.say('"I did it!" said {a.name}.', '"You are so brave!" said {b.name}.')
    s.say(
        "{a.name} was very proud.",
        "Now {a.name} likes to {deed}.",
        "From that day on, {a.name} was not afraid.",
    )


def rescue(s):
    """a frees an animal, which becomes a friend."""
    where, how = s.pick(words.TRAPS)
    s.set(pet=s.pick(words.LOST_PETS), where=where, how=how)
    meet(s)
    go(s)
    s.say("Then {a.he} heard a soft cry.", "Suddenly, {a.he} heard a noise.")
    s.say("A {colour} {pet} was stuck {where}.", "There was a little {pet} stuck {where}.")
    s.say('"Help me, please!" cried the {pet}.', "The {pet} was cold and scared.")
    s.say(
        '"Do not be afraid," said {a.name}. "I will help you."',
        '"Poor little {pet}," said {a.name}.',
    )
    s.say("{a.He} {how}.", "So {a.he} {how}.")
    s.say("The {pet} was free at last.", "Soon the {pet} was safe in {a.his} arms.")
    s.maybe(
        "{a.name} gave the {pet} some water.", "{a.name} took the {pet} home and gave it some food."
    )
    s.say(
        "The {pet} was happy and stayed with {a.name}.",
        "From that day on, the {pet} and {a.name} were friends.",
        "The {pet} ran back to its mother, and {a.name} waved.",
    )
    end_happy(s)


def birthday(s):
    """b gives a a present."""
    meet(s)
    s.say("It was {a.his} birthday.", "Today was {a.his} birthday, and {a.he} was very excited.")
    s.say("{a.His} {helper} made a big cake.", "There was a big cake and many {colour_b} balloons.")
    s.say(
        "Then {a.his} friend {b.name} came with a big box.",
        "{b.name} the {b.kind} came to the party with a box.",
    )
    s.say('"Happy birthday, {a.name}!" said {b.name}.', '"This is for you," said {b.name}.')
    s.say('"What is it?" asked {a.name}.', "{a.name} could not wait to look inside.")
    s.say("{a.He} opened the box and saw a {colour} {toy}.", "In the box was a new {colour} {toy}.")
    s.say(
        '"I love it! Thank you!" said {a.name}.',
        '"Wow, a {toy}!" said {a.name}. "Thank you, {b.name}!"',
    )
    s.say("They ate cake and played with the {toy}.", "Then they all sang a song and ate the cake.")
    end_both(s)


def mend(s):
    """A thing is broken; the helper shows how to mend it."""
    thing, how, tool = s.pick(words.BREAKS)
    s.set(thing=thing, how=how, tool=tool)
    meet(s)
    s.say(
        "One day, something was wrong with {a.his} {thing}.",
        "One morning, {a.he} saw that the {colour} {thing} was broken.",
    )
    s.say("{how}.", "{how}, and {a.name} did not know what to do.")
    s.say("{a.He} was sad.", "{a.name} wanted to fix it.")
    s.say(
        '"Can you fix the {thing}?" {a.he} asked {a.his} {helper}.',
        '{a.He} asked {a.his} {helper}, "Can you help me?"',
    )
    s.say(
        '"We can fix it together," said {a.his} {helper}.',
        '"Yes, but you must help me," {a.his} {helper} said.',
    )
    s.say("{a.name} got {tool}.", "They took {tool} and worked all morning.")
    s.say("They worked with care.", "{a.name} held the {thing} and {a.his} {helper} fixed it.")
    s.say("Soon the {thing} was as good as new.", "At last the {thing} was not broken any more.")
    s.say('"Now I can fix things too!" said {a.name}.', '"Thank you for your help," said {a.name}.')
    end_happy(s)


def seed(s):
    """a plants a seed, waits, and it grows."""
    plant, look = s.pick(words.PLANTS)
    s.set(plant=plant, look=look)
    meet(s)
    s.say(
        "One day, {a.name} found a small seed {spot}.",
        "One day, {a.his} {helper} gave {a.him} a tiny seed.",
    )
    s.say('"What will it be?" asked {a.name}.', '"What should I do with it?" {a.he} asked.')
    s.say(
        '"Put it in the ground and wait," said {a.his} {helper}.',
        '"Plant it and give it water," {a.his} {helper} said.',
    )
    s.say(
        "{a.name} dug a hole and put the seed in it.", "So {a.he} planted the seed in the garden."
    )
    s.say("Every day, {a.he} gave it water.", "{a.He} gave it water every morning.")
    s.say(
        "The days went by, but nothing happened.",
        "For a long time, there was nothing to see.",
        "{a.name} waited and waited.",
    )
    s.say(
        "Then, one morning, there was a little green leaf.",
        "At last a green leaf came out of the ground.",
    )
    s.say(
        "The leaf grew and grew until it was a {plant}.",
        "Week after week it grew, and it was a {plant}.",
    )
    s.say("The {plant} was {look}.", "It was {look}.")
    end_happy(s)


def race(s):
    """a loses or wins a race by being kind or careful."""
    meet_both(s)
    s.say(
        'One day, {b.name} said, "I am faster than you."',
        '"Let us have a race," said {b.name} one day.',
    )
    s.say(
        '"Let us run to the {place}," said {a.name}.',
        '"Good, we will run to the big tree," said {a.name}.',
    )
    s.say("One, two, three, and they ran.", "They ran as fast as the wind.")
    s.say("{b.name} was in front.", "Soon {b.name} was far ahead.")
    s.say(
        "But then {b.name} fell over a stone.", "But {b.name} did not look and fell into the mud."
    )
    s.say("{a.name} could win the race now, but {a.he} stopped.", "{a.name} did not run on.")
    s.say('"Are you hurt?" asked {a.name}.', '"Take my hand," said {a.name}.')
    s.say("{a.name} helped {b.name} to get up.", "{a.name} pulled {b.name} up.")
    s.say("They walked to the end together.", "Then they ran side by side.")
    s.say('"We both win," said {b.name}.', '"A friend is better than a prize," said {b.name}.')
    end_both(s)


def walk(s):
    """a goes somewhere, sees things, comes home tired."""
    meet(s)
    go(s)
    s.say("{a.He} wanted to see what was there.", "{a.He} liked to look at everything.")
    s.say(
        "Near a tree, {a.he} met a {b.kind} named {b.name}.",
        "There {a.he} met {b.name}, a {trait_b} {b.kind}.",
    )
    s.say(
        '"Hello, what is your name?" asked {b.name}. '
        '"I am {a.name}," said {a.name}. "Let us play!"',
        '"Do you want to play with me?" asked {b.name}. "Yes, please," said {a.name}.',
    )
    s.say(
        "They played with a {colour} {toy}.",
        "They ran and jumped and found some {food}.",
        "They played hide and seek. {b.name} hid {spot}.",
    )
    s.say("Soon the sun went down and it was late.", "Then it was time to go home.")
    s.say('"I have to go now," said {a.name}.', '"See you tomorrow!" said {b.name}.')
    s.say(
        "{a.name} was tired, so {a.he} went to bed early.",
        "At home, {a.he} told {a.his} {helper} about {b.name}.",
    )
    s.maybe('"I am glad that you made a new friend," said {a.his} {helper}.')


def hungry(s):
    """b has no food; a shares."""
    meet(s)
    s.say("{a.He} had a bag of {food}.", "One day, {a.his} {helper} gave {a.him} some {food}.")
    s.say("{a.name} went to the {place} to eat them.", "{a.He} took the {food} to the {place}.")
    s.say("Then a {trait_b} {b.kind} came by.", "Then {a.he} saw a {b.kind} {spot}.")
    s.say("The {b.kind} was thin and hungry.", "The {b.kind} looked at the {food} with big eyes.")
    s.say(
        '"What is your name?" asked {a.name}. "I am {b.name}," said the {b.kind}.',
        '"Are you hungry?" asked {a.name}. "Yes, I am," said {b.name}, the {b.kind}.',
    )
    s.say(
        "{a.name} gave half of the {food} to {b.name}.",
        '"You can have some of my {food}," said {a.name}.',
    )
    s.say("They ate together.", "{b.name} ate all of it.", "They sat side by side and ate.")
    s.say('"You are very kind," said {b.name}.', '"Thank you, I feel much better," said {b.name}.')
    s.say("{a.name} learned that it is good to share.", "The {food} tasted better with a friend.")
    end_both(s)


def wish(s):
    """a makes a wish at bedtime; it is about a thing or a friend."""
    s.set(sky=s.pick(words.WISHES))
    s.set(wonder=s.fields["sky"][0], when=s.fields["sky"][1])
    meet(s)
    s.say("{when}.", "One evening, {a.he} looked out of the window. {when}.")
    s.say(
        '"Look, what a nice {wonder}!" said {a.name}.',
        "{a.name} looked at the {wonder} for a long time.",
    )
    s.say(
        '"You can make a wish," said {a.his} {helper}.',
        '{a.His} {helper} said, "Close your eyes and make a wish."',
    )
    s.say(
        '"I wish for a {colour} {toy}," said {a.name}.',
        "{a.name} wished for a {colour} {toy}.",
        '"I wish for a good friend," said {a.name}.',
    )
    s.say("Then {a.he} went to bed.", "{a.He} closed {a.his} eyes and went to sleep.")
    s.say(
        "In the morning, there was a knock at the door.", "The next day, somebody came to the door."
    )
    s.say(
        "It was {b.name}, a {trait_b} {b.kind}, with a {colour} {toy}.",
        "{b.name} the {b.kind} was there with a {colour} {toy} to play with.",
    )
    s.say(
        '"Do you want to play with me?" asked {b.name}.',
        '"Hello, can we be friends?" asked {b.name}.',
    )
    s.say("{a.name} jumped for joy.", '"Yes!" said {a.name}. "My wish came true!"')
    end_both(s)


def truth(s):
    """a breaks something and says so."""
    s.set(pot=s.pick(["cup", "plate", "vase", "lamp", "jar", "bowl"]))
    meet(s)
    s.say(
        "One day, {a.he} played with a ball in the house.",
        "{a.He} was running in the house one day.",
    )
    s.say("Crash! The {colour} {pot} broke.", "Oh no! The {pot} fell down and broke.")
    s.say(
        "{a.name} was afraid that {a.his} {helper} would be angry.",
        "{a.name} wanted to hide {a.his} face.",
    )
    s.say(
        '"What was that noise?" asked {a.his} {helper}.',
        'Then {a.his} {helper} came in and asked, "What happened?"',
    )
    s.say("{a.name} thought for a moment.", "{a.name} looked at the floor.")
    s.say(
        '"I broke the {pot}. I am sorry," said {a.name}.',
        '"It was me," said {a.name}. "I am very sorry."',
    )
    s.say(
        '"Thank you for telling the truth," said {a.his} {helper}.',
        '{a.His} {helper} was not angry. "I am glad that you told me," {helper_he} said.',
    )
    s.say("They cleaned the floor together.", "Then they picked up all the pieces.")
    s.say("{a.name} learned to tell the truth.", "From that day on, {a.name} was more careful.")


def bedtime(s):
    """a cannot sleep; the helper finds out why."""
    fright, cause = s.pick(
        [
            ("a strange noise", "the wind in the trees"),
            ("a tall shadow", "a coat on the door"),
            ("two bright eyes", "a cat at the window"),
            ("a soft tap", "rain on the roof"),
        ]
    )
    s.set(
        fright=fright,
        cause=cause,
        sense="heard" if fright in ("a strange noise", "a soft tap") else "saw",
    )
    meet(s)
    s.say("It was late, and {a.he} was in bed.", "One night, {a.he} could not sleep.")
    s.say("Then {a.he} {sense} {fright} in the dark.", "Suddenly, {a.he} {sense} {fright}.")
    s.say("{a.name} was very scared.", "{a.name} hid under the blanket.")
    s.say(
        '"My {helper} will help me," thought {a.name} and called out.',
        "{a.He} called {a.his} {helper}.",
    )
    s.say(
        '"What is wrong?" asked {a.his} {helper}.',
        '{a.His} {helper} came in with a light and asked, "What is it?"',
    )
    s.say('"I {sense} {fright}," said {a.name}.', '"There is something in my room," said {a.name}.')
    s.say(
        "They looked together. It was only {cause}.", '"It is only {cause}," said {a.his} {helper}.'
    )
    s.say("{a.name} laughed.", "{a.name} was not scared any more.")
    s.say(
        "{a.His} {helper} read {a.him} a story about a {b.kind} named {b.name}.",
        "{a.His} {helper} sang {a.him} a quiet song.",
    )
    s.say(
        "Soon {a.name} was fast asleep.", "Then {a.he} closed {a.his} eyes and slept until morning."
    )


def hide(s):
    """a and b play hide and seek."""
    meet_both(s)
    s.say(
        "One day, they played hide and seek {at}.",
        "One morning, they went to the {place} to play hide and seek.",
    )
    s.say(
        '"I will count to ten," said {a.name}. "You must hide."',
        '"You hide and I will find you," said {a.name}.',
    )
    s.say("{b.name} ran away and hid {spot}.", "{b.name} laughed and hid {spot}.")
    s.say('"I am coming!" said {a.name}.', '"Nine, ten!" said {a.name}. "Here I come!"')
    s.say(
        "{a.name} looked {wrong}, but {b.name} was not there.",
        "First {a.name} looked {wrong}, but there was only a {colour} {toy}.",
    )
    s.maybe("{a.He} looked everywhere and only saw {sight}.")
    s.say("Then {a.he} heard a small laugh.", "Then {a.name} heard a sneeze.")
    s.say(
        "{a.He} looked {spot}, and there was {b.name}!",
        "It came from the place where {b.name} was.",
    )
    s.say('"I found you!" said {a.name}.', '"Now I can see you!" said {a.name}.')
    s.say(
        '"Now it is my turn to look," said {b.name}.', '"You are good at this game," said {b.name}.'
    )
    end_both(s)


def market(s):
    """a has money for a thing, and buys a present instead."""
    s.set(gift=s.pick(["flowers", "warm socks", "sweet plums", "ribbons", "candles"]))
    meet(s)
    s.say(
        "{a.He} had three coins and wanted to buy a {colour} {toy}.",
        "{a.He} saved {a.his} coins to buy a {colour} {toy}.",
    )
    s.say(
        "One day, {a.he} went to the market.", "One morning, {a.name} took the coins to the shop."
    )
    s.say("{a.He} saw the {toy} at once.", "There was the {colour} {toy}, and it was very nice.")
    s.say("But then {a.he} saw some {gift}.", "Next to it, there were some {gift}.")
    s.say(
        "{a.name} thought of {a.his} {helper}, who was sick.",
        "{a.He} knew that {a.his} {helper} loved {gift}.",
    )
    s.say(
        '"I want the {gift}, please," said {a.name}.',
        "So {a.he} did not buy the {toy}. {a.He} bought the {gift}.",
    )
    s.say(
        "{a.name} ran home and gave the {gift} to {a.his} {helper}.",
        '"These are for you," {a.he} said to {a.his} {helper}.',
    )
    s.say(
        '"You are so kind," said {a.his} {helper}.',
        "{a.His} {helper} was so happy and hugged {a.him}.",
    )
    s.say(
        "{a.name} did not think about the {toy} any more.",
        "The next day, there was a {colour} {toy} on the bed.",
    )
    end_happy(s)


def teach(s):
    """b teaches a to do something."""
    skill, hint = s.pick(
        [
            ("whistle", "Make your lips round and blow"),
            ("read", "Look at one letter at a time"),
            ("skip stones", "Find a flat stone and throw it low"),
            ("draw", "Start with a big round shape"),
            ("dance", "Listen to the music and move your feet"),
            ("knit", "Pull the thread through the loop"),
        ]
    )
    s.set(skill=skill, hint=hint)
    meet(s)
    s.say(
        "{a.He} did not know how to {skill}.",
        "{a.He} wanted to {skill}, but {a.he} did not know how.",
    )
    s.say("One day, {a.he} saw {b.name} {at}.", "One day, {b.name} the {b.kind} was {at}.")
    s.say("{b.name} could {skill} very well.", "{b.name} was very good at it.")
    s.say('"Can you teach me to {skill}?" asked {a.name}.', '"How do you do that?" asked {a.name}.')
    s.say('"I will show you," said {b.name}. "{hint}."', '"It is easy," said {b.name}. "{hint}."')
    s.say(
        "{a.name} tried, but it did not work.",
        "The first time, it went wrong.",
        "It was hard at first.",
    )
    s.say('"Try again," said {b.name}.', '"Do not give up," said {b.name}.')
    s.say("{a.name} tried every day.", "{a.name} tried again and again.")
    s.say(
        "At last {a.he} could {skill} too.",
        "Then, one day, {a.name} could {skill} as well as {b.name}.",
    )
    s.say('"You are a good teacher," said {a.name}.', '"Look, I can {skill}!" said {a.name}.')
    end_both(s)


def sick(s):
    """b is sick; a comes to see b."""
    gift, effect = s.pick(
        [
            ("some hot soup", "The soup was warm and good"),
            ("a big bunch of flowers", "The flowers smelled sweet"),
            ("a funny book", "The book made them laugh"),
            ("some honey and tea", "The tea was hot and sweet"),
        ]
    )
    s.set(gift=gift, effect=effect)
    meet_both(s)
    s.say("One day, {b.name} did not come out to play.", "One morning, {b.name} was not {at}.")
    s.say('"Where is {b.name}?" asked {a.name}.', "{a.name} waited for a long time.")
    s.say(
        '"{b.name} is sick and must stay in bed," said {a.his} {helper}.',
        "Then {a.he} heard that {b.name} was sick.",
    )
    s.say("{a.name} wanted to help.", '"Then I will go and see {b.name}," said {a.name}.')
    s.say(
        "{a.He} took {gift} and went to see {b.name}.",
        "So {a.he} came to the house of {b.name} with {gift}.",
    )
    s.say(
        '"How are you?" asked {a.name}. "My head hurts," said {b.name}.',
        '"I have {gift} for you," said {a.name}. "Oh, thank you!" said {b.name}.',
    )
    s.say("{effect}.", "{effect}, and {b.name} felt better.")
    s.say("The next day, {b.name} was well again.", "Soon {b.name} could go out and play.")
    end_both(s)


# A moment: the first sentence, and some of the further ones in their order.
THINGS = [
    (
        [
            "{a.name} had a {colour} {toy}.",
            "{a.name} was a {trait} {a.kind} with a {colour} {toy}.",
            "One day, {a.name} found a {colour} {toy}.",
            "{a.name} got a {colour} {toy} from {a.his} {helper}.",
        ],
        [
            "The {toy} was very {colour}.",
            '"I like this {toy}," said {a.name}.',
            "{a.name} loved the {colour} {toy}.",
            "{a.name} played with the {toy} {at}.",
            '"What a nice {toy}, {a.name}!" said {b.name}.',
            "{a.He} took {a.his} {colour} {toy} home.",
            "{a.name} was happy.",
        ],
    ),
    (
        [
            "{a.name} went to the {place}.",
            "One day, {a.name} was {at}.",
            "{a.name} was a {trait} {a.kind} who lived near the {place}.",
            '"I will go to the {place}," said {a.name}.',
        ],
        [
            "It was a sunny day.",
            "{a.name} saw {sight}.",
            "{a.He} sat down {spot}.",
            "{a.name} liked the {place}.",
            '"Come here, {a.name}!" said {b.name}.',
            '"It is late, {a.name}," said {a.his} {helper}.',
            "Then {a.name} went home.",
        ],
    ),
    (
        [
            "{a.name} was hungry.",
            "{a.name} wanted some {food}.",
            "{a.name} the {a.kind} liked {food}.",
        ],
        [
            '"Here are some {food}, {a.name}," said {a.his} {helper}.',
            "{a.name} ate the {food}.",
            '"I love {food}," said {a.name}.',
            '{a.name} gave some {food} to {b.name}. "Thank you, {a.name}," said {b.name}.',
            "{a.name} was not hungry any more.",
        ],
    ),
    (
        [
            "{a.name} met {b.name}.",
            "{a.name} and {b.name} were friends.",
            "{a.name} saw {b.name} {at}.",
            "{a.name} the {a.kind} and {b.name} the {b.kind} were {at}.",
        ],
        [
            '"Hello, {b.name}!" said {a.name}.',
            '"Hello, {a.name}!" said {b.name}.',
            "{a.name} smiled at {b.name}.",
            "{b.name} gave {a.name} a {colour} {toy}.",
            "{a.name} and {b.name} played.",
            '"See you tomorrow, {b.name}," said {a.name}.',
            "{a.name} liked {b.name}.",
        ],
    ),
    (
        [
            "{a.name} was tired.",
            "It was late, and {a.name} was in bed.",
            "{a.name} the {a.kind} could not sleep.",
        ],
        [
            "{a.His} {helper} read {a.him} a story.",
            "{a.name} had {a.his} {colour} {toy}.",
            "{a.name} closed {a.his} eyes.",
            '"Good night, {a.name}," said {a.his} {helper}.',
            '"Good night," said {a.name}.',
            "Soon {a.name} was asleep.",
        ],
    ),
    (
        [
            "There was a {trait} {a.kind} named {a.name}.",
            "Once upon a time, there was a {a.kind} named {a.name}.",
            "{a.name} was a {trait} {a.kind}.",
            "The {trait} {a.kind} was called {a.name}.",
        ],
        [
            '"I am {a.name}," {a.he} said.',
            "{a.name} had a friend named {b.name}.",
            "{a.name} lived near the {place}.",
            '"{a.name} is a {trait} {a.kind}," said {b.name}.',
            "{a.He} liked to play with {b.name}.",
            "{a.name} and {b.name} were happy.",
        ],
    ),
]


def moment(s):
    """A first sentence and two to four more."""
    first, further = s.pick(THINGS)
    s.say(*first)
    count = 2 + int(s.rng.random() * 3)
    while len(further) > count:
        dropped = s.pick(further)
        further = [f for f in further if f != dropped]
    for wording in further:
        s.say(wording)


def where_is(s):
    """a looks for a thing; b knows where it is."""
    s.maybe("{a.name} and {b.name} were {at}.", "{a.name} was {at} with {b.name}.")
    s.say(
        '"Where is my {colour} {toy}?" asked {a.name}.',
        '"I cannot find my {colour} {toy}," said {a.name}.',
    )
    s.say(
        '"It is {spot}," said {b.name}.',
        '"Look {spot}, {a.name}," said {b.name}.',
        '"I saw the {toy} {spot}," said {b.name}.',
    )
    s.say(
        "{a.name} looked {spot}, and there was the {colour} {toy}.",
        "The {colour} {toy} was {spot}.",
        "{a.name} found the {toy} {spot}.",
    )
    s.say('"Thank you, {b.name}," said {a.name}.', "{a.name} was happy and thanked {b.name}.")


def going(s):
    """a is on the way somewhere; b comes too."""
    s.maybe("One day, {a.name} met {b.name}.", "{b.name} saw {a.name} on the road.")
    s.say('"Where are you going, {a.name}?" asked {b.name}.')
    s.say('"I am going to the {place}," said {a.name}.')
    s.say('"Can I come too?" asked {b.name}.', '"May I go with you?" asked {b.name}.')
    s.say('"Yes, {b.name}, come with me," said {a.name}.', '"Of course," said {a.name}.')
    s.say(
        "So {a.name} and {b.name} went to the {place}.",
        "{a.name} and {b.name} walked to the {place} and saw {sight}.",
    )


def choose(s):
    """a may choose one of two things."""
    s.maybe("{a.name} was in a shop with {a.his} {helper}.", "It was a big day for {a.name}.")
    s.say(
        '"Do you want the {colour} {toy} or the {colour_b} {toy}?" asked {a.his} {helper}.',
        '"There is a {colour} {toy} and a {colour_b} {toy}," said {a.his} {helper}.',
    )
    s.say(
        '"I want the {colour_b} {toy}," said {a.name}.', "{a.name} looked at the {colour_b} {toy}."
    )
    s.say(
        "So {a.name} got the {colour_b} {toy}.",
        "{a.His} {helper} gave {a.him} the {colour_b} {toy}.",
    )
    s.say('"Thank you, {helper}!" said {a.name}.', "{a.name} loved the {colour_b} {toy}.")


def why_sad(s):
    """a says why a is sad, and b helps."""
    s.maybe("{a.name} was sad.", "{b.name} saw that {a.name} was sad.")
    s.say(
        '"Why are you sad, {a.name}?" asked {b.name}.', '"What is wrong, {a.name}?" asked {b.name}.'
    )
    s.say(
        '"I have no {toy}," said {a.name}.',
        '"I want to play, but I have no {toy}," said {a.name}.',
    )
    s.say(
        '"You can play with my {colour} {toy}," said {b.name}.',
        '"Here is a {colour} {toy} for you," said {b.name}.',
    )
    s.say("{a.name} took the {colour} {toy} and smiled.", "Now {a.name} had a {colour} {toy}.")
    s.say('"You are a good friend, {b.name}," said {a.name}.', "{a.name} was not sad any more.")


def who_are_you(s):
    """a and b tell their names."""
    s.say("A {a.kind} met a {b.kind} {at}.", "One day, a {trait} {a.kind} saw a {b.kind} {at}.")
    s.say(
        '"I am {a.name}," said the {a.kind}. "Who are you?"',
        '"My name is {a.name}," said the {a.kind}.',
    )
    s.say('"My name is {b.name}," said the {b.kind}.', '"And I am {b.name}," said the {b.kind}.')
    s.say(
        '"Do you want to play, {b.name}?" asked {a.name}. "Yes, {a.name}," said {b.name}.',
        '"Nice to meet you, {b.name}," said {a.name}. "Let us play, {a.name}," said {b.name}.',
    )
    s.say("So {a.name} and {b.name} played {at}.", "Then {a.name} and {b.name} were friends.")


def rainy(s):
    """It rains; a plays at home."""
    s.say("It was raining.", "It was a cold and wet day.")
    s.say('"I cannot go to the {place}," said {a.name}.', "{a.name} could not go to the {place}.")
    s.say(
        '"You can play with your {colour} {toy}, {a.name}," said {a.his} {helper}.',
        '"Where is your {colour} {toy}, {a.name}?" asked {a.his} {helper}.',
    )
    s.say("So {a.name} played with the {toy}.", "{a.name} took the {colour} {toy} and played.")
    s.say("Then the sun came out.", "Soon the rain stopped.", "It was warm and dry in the house.")
    s.say("{a.name} ran to the {place}.", "{a.name} had a good day.")


STORIES = [
    lost_thing,
    share,
    rain,
    make,
    brave,
    rescue,
    birthday,
    mend,
    seed,
    race,
    walk,
    hungry,
    wish,
]
STORIES += [truth, bedtime, hide, market, teach, sick]
TALKS = [where_is, going, choose, why_sad, who_are_you, rainy]

# Which plans, and with what share of the texts.
PLANS = [([moment], 0.25), (TALKS, 0.25), (STORIES, 0.5)]
